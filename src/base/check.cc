#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tidekv {

void check_failed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
  std::abort();
}

void check_failed(const char* file, int line, const char* expression, std::int64_t a,
                  std::int64_t b) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%lld, %lld)\n", file, line, expression,
               static_cast<long long>(a), static_cast<long long>(b));
  std::abort();
}

}  // namespace tidekv
