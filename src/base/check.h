// Our own bugs stop the program at once, with the values that show them. User input never gets
// here: it is checked at the boundary and becomes an Error (include/tidekv/result.h).
#pragma once

#include <cstdint>

namespace tidekv {

// Prints "file:line: check failed: expression (a = .., b = ..)" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* expression);
[[noreturn]] void check_failed(const char* file, int line, const char* expression, std::int64_t a,
                               std::int64_t b);

}  // namespace tidekv

#define TIDEKV_CHECK(condition)                               \
  do {                                                        \
    if (!(condition)) {                                       \
      ::tidekv::check_failed(__FILE__, __LINE__, #condition); \
    }                                                         \
  } while (false)

// Compares two integers and shows both when the comparison fails: TIDEKV_CHECK_OP(rows, ==, 3).
#define TIDEKV_CHECK_OP(a, op, b)                                                          \
  do {                                                                                     \
    const auto tidekv_a_ = static_cast<std::int64_t>(a);                                   \
    const auto tidekv_b_ = static_cast<std::int64_t>(b);                                   \
    if (!(tidekv_a_ op tidekv_b_)) {                                                       \
      ::tidekv::check_failed(__FILE__, __LINE__, #a " " #op " " #b, tidekv_a_, tidekv_b_); \
    }                                                                                      \
  } while (false)

#ifdef NDEBUG
#define TIDEKV_DCHECK(condition) static_cast<void>(0)
#else
#define TIDEKV_DCHECK(condition) TIDEKV_CHECK(condition)
#endif
