#include "compress/selector.h"

#include <string>

namespace tidekv {
namespace {

// Beyond this no window, kernel or sink count makes sense, and sizes stay far from overflow.
constexpr std::int64_t kMaxWindowLen = 4096;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;

Error refuse(const std::string& message) { return Error{ErrorCode::kInvalidArgument, message}; }

// Options that no recipe survives, whether or not this one reads them.
Status check_ranges(const SelectorOptions& options) {
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
  if (options.unit_len < 1 || options.unit_len > kMaxWindowLen) {
    return refuse("--unit " + std::to_string(options.unit_len) + ": expected 1 to " +
                  std::to_string(kMaxWindowLen));
  }
  if (!(options.even_share >= 0 && options.even_share <= 1)) {  // NaN too
    return refuse("--alpha " + std::to_string(options.even_share) + ": expected 0 to 1");
  }
  if (options.steepness < 1 || options.steepness >= kMaxTokens) {
    return refuse("--beta " + std::to_string(options.steepness) + ": expected 1 or more");
  }
  return Ok{};
}

// The flags from which the recipe's mandatory tokens come.
std::string mandatory_flags(const ScoreRecipe& recipe, const SelectorOptions& options) {
  const std::string sinks = "--sinks " + std::to_string(options.num_sinks);
  const std::string window = "--window " + std::to_string(options.window_len);
  const bool has_window = recipe.window_len == options.window_len;
  return !has_window ? sinks : options.num_sinks == 0 ? window : window + " and " + sinks;
}

}  // namespace

Status check_selector_options(const SelectorEntry& selector, const SelectorOptions& options) {
  TIDEKV_TRY(check_ranges(options));
  const ScoreRecipe recipe = selector.create(options)->score_recipe(options.budget);
  if (recipe.num_mandatory() > options.budget) {
    return refuse(mandatory_flags(recipe, options) + ": " + std::string(selector.name) +
                  " always retains " + std::to_string(recipe.num_mandatory()) +
                  " tokens, which exceeds --budget " + std::to_string(options.budget) +
                  "; raise the budget or keep fewer always");
  }
  return Ok{};
}

}  // namespace tidekv
