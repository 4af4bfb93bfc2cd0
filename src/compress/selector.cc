#include "compress/selector.h"

#include <string>

namespace tidekv {
namespace {

// Beyond this no window, kernel or sink count makes sense, and sizes stay far from overflow.
constexpr std::int64_t kMaxWindowLen = 4096;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;

Error refuse(const std::string& message) { return Error{ErrorCode::kInvalidArgument, message}; }

}  // namespace

Status check_selector_options(const SelectorOptions& options) {
  if (options.budget < 1 || options.budget >= kMaxTokens) {
    return refuse("--budget " + std::to_string(options.budget) +
                  ": expected a number of tokens from 1 to 2147483647");
  }
  if (options.window_len < 1 || options.window_len > kMaxWindowLen) {
    return refuse("--window " + std::to_string(options.window_len) + ": expected 1 to " +
                  std::to_string(kMaxWindowLen));
  }
  if (options.num_sinks < 0 || options.num_sinks >= kMaxTokens) {
    return refuse("--sinks " + std::to_string(options.num_sinks) + ": expected 0 or more");
  }
  if (options.pool.kernel_len < 1 || options.pool.kernel_len % 2 == 0 ||
      options.pool.kernel_len > kMaxWindowLen) {
    return refuse("--kernel " + std::to_string(options.pool.kernel_len) +
                  ": expected an odd number from 1 to " + std::to_string(kMaxWindowLen - 1));
  }
  if (options.window_len + options.num_sinks > options.budget) {
    return refuse("--window " + std::to_string(options.window_len) + " and --sinks " +
                  std::to_string(options.num_sinks) + " are always retained and exceed --budget " +
                  std::to_string(options.budget) + "; raise the budget or lower them");
  }
  return Ok{};
}

}  // namespace tidekv
