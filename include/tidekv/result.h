// Failure as a value: Result<T>, Status, ErrorCode.
//
// The library neither throws nor prints nor exits on bad input, a missing file, a request that does
// not fit, or a cancelled run. Each is an Error: what went wrong, in which file or field, and what
// would have been right.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace tidekv {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // a flag, an option or a request field is wrong
  kBadFile,          // a file is damaged, or not what its name says
  kNotFound,         // a file, tensor or name does not exist
  kUnsupported,      // a valid input that this build does not handle
  kDoesNotFit,       // the plan exceeds the memory limit; refused before work starts
  kOutOfMemory,      // an allocation failed
  kCancelled,        // the caller asked to stop
};

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

struct Ok {};

// Either a value or an Error. Look before you take: value() on an error terminates.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {
  }  // implicit: `return value;` is the point
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {
  }  // implicit: `return Error{...};` is the point

  bool ok() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Ok>;

}  // namespace tidekv

// Returns the error of `expr` to the caller, if it has one.
#define TIDEKV_TRY(expr)                        \
  do {                                          \
    auto tidekv_status_ = (expr);               \
    if (!tidekv_status_.ok()) {                 \
      return std::move(tidekv_status_).error(); \
    }                                           \
  } while (false)

#define TIDEKV_CONCAT_INNER_(a, b) a##b
#define TIDEKV_CONCAT_(a, b) TIDEKV_CONCAT_INNER_(a, b)

// TIDEKV_ASSIGN(auto x, f()): declares x from f()'s value, or returns f()'s error.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses
#define TIDEKV_ASSIGN(decl, expr)                                       \
  auto TIDEKV_CONCAT_(tidekv_result_, __LINE__) = (expr);               \
  if (!TIDEKV_CONCAT_(tidekv_result_, __LINE__).ok()) {                 \
    return std::move(TIDEKV_CONCAT_(tidekv_result_, __LINE__)).error(); \
  }                                                                     \
  decl = std::move(TIDEKV_CONCAT_(tidekv_result_, __LINE__)).value()
// NOLINTEND(bugprone-macro-parentheses)
