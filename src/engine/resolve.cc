// Options to decisions: method, type, lengths, and the chunk length that fits.
#include <algorithm>
#include <numeric>
#include <string>

#include "engine/planner.h"
#include "model/config_limits.h"

namespace tidekv {
namespace {

DType compute_dtype(const ModelContext& model, ComputeType type) {
  if (type == ComputeType::kAuto) {
    const DType weights = model.config->dtype.value_or(model.weights->embedding.dtype);
    return weights == DType::kF32 ? DType::kF32 : DType::kBF16;
  }
  return type == ComputeType::kF32 ? DType::kF32 : DType::kBF16;
}

BudgetRule budget_rule(BudgetSplit split) {
  switch (split) {
    case BudgetSplit::kExact:
      return BudgetRule::kExact;
    case BudgetSplit::kKvpress:
      return BudgetRule::kKvpress;
    case BudgetSplit::kKvcf:
      return BudgetRule::kKvcf;
  }
  return BudgetRule::kExact;
}

AttentionKind attention_kind(AttentionImplementation attention) {
  switch (attention) {
    case AttentionImplementation::kFlash:
      return AttentionKind::kFlash;
    case AttentionImplementation::kMasked:
      return AttentionKind::kMasked;
    case AttentionImplementation::kEager:
      return AttentionKind::kEager;
  }
  return AttentionKind::kFlash;
}

SelectorOptions selector_options(const Method& method, const PrefillOptions& options) {
  return {
      .budget = options.budget,
      .window_len = options.window_len,
      .num_sinks = options.num_sinks == PrefillOptions::kMethodsSinks ? method.default_sinks
                                                                      : options.num_sinks,
      .pool = {.group_reduce = options.group_reduction == GroupReduction::kMean ? GroupReduce::kMean
                                                                                : GroupReduce::kMax,
               .pool = options.pooling == Pooling::kMax ? Pool::kMax : Pool::kAverage,
               .kernel_len = options.kernel_len},
      .unit_len = options.unit_len,
      .even_share = options.even_share,
      .steepness = options.steepness,
      .rule = budget_rule(options.budget_split)};
}

Error refuse(const std::string& message) { return Error{ErrorCode::kInvalidArgument, message}; }

Result<std::int64_t> context_length(const ModelConfig& config, const PrefillOptions& options) {
  if (options.beyond_context && options.context_len == 0) {
    return refuse("--beyond-context: expected a context length with it, -c N");
  }
  const std::int64_t most = options.beyond_context ? limits::kPositions.max : config.max_positions;
  if (options.context_len < 0 || options.context_len > most) {
    return refuse("-c " + std::to_string(options.context_len) + ": the model's context is " +
                  std::to_string(config.max_positions) + " tokens; expected 1 to " +
                  (options.beyond_context
                       ? std::to_string(most)
                       : "that, or --beyond-context to run at positions it was not trained for") +
                  ", or 0 for the model's");
  }
  return options.context_len == 0 ? config.max_positions : options.context_len;
}

constexpr std::int64_t kMostResidualLen = std::int64_t{1} << 20;

// Of the method's cache; nothing for one that stores rows.
Result<KvQuantiser> quantiser_of(const Method& method, const PrefillOptions& options,
                                 std::int64_t head_dim) {
  if (method.kv_bits == 0) {
    return KvQuantiser{};
  }
  constexpr std::int64_t kUsualGroup = 32;
  const std::int64_t group_len =
      options.kv_group_len == 0 ? std::gcd(kUsualGroup, head_dim) : options.kv_group_len;
  if (group_len < 1 || head_dim % group_len != 0) {
    return refuse("--kv-group " + std::to_string(group_len) +
                  ": expected a divisor of the model's head dimension, " +
                  std::to_string(head_dim));
  }
  if (options.kv_residual_len < 1 || options.kv_residual_len > kMostResidualLen ||
      options.kv_residual_len % group_len != 0) {
    return refuse("--kv-residual " + std::to_string(options.kv_residual_len) +
                  ": expected a multiple of the group, " + std::to_string(group_len) +
                  " tokens, up to " + std::to_string(kMostResidualLen));
  }
  return KvQuantiser{method.kv_bits, group_len, options.kv_residual_len};
}

// Candidates of all KV heads of a layer have 32-bit ids.
Status check_candidates(const ModelConfig& config, std::int64_t prompt_len) {
  constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1;
  if (prompt_len > kMostRows / config.num_kv_heads) {
    return Error{ErrorCode::kUnsupported,
                 "the prompt has " + std::to_string(prompt_len) + " tokens; with " +
                     std::to_string(config.num_kv_heads) + " KV heads at most " +
                     std::to_string(kMostRows / config.num_kv_heads) + " are possible"};
  }
  return Ok{};
}

Status check_lengths(const PrefillOptions& options, std::int64_t prompt_len,
                     std::int64_t context_len) {
  if (prompt_len < 1) {
    return refuse("the prompt is empty; at least one token is needed");
  }
  if (prompt_len > context_len) {
    return refuse("the prompt has " + std::to_string(prompt_len) + " tokens; the context holds " +
                  std::to_string(context_len) +
                  " (nothing is cut off silently: shorten the prompt" +
                  (options.context_len > 0 ? ", or raise -c)" : ")"));
  }
  if (options.chunk_len < 0) {
    return refuse("--chunk " + std::to_string(options.chunk_len) +
                  ": expected a number of tokens, or auto");
  }
  if (options.key_block_len < 1) {
    return refuse("--key-block " + std::to_string(options.key_block_len) +
                  ": expected 1 token or more");
  }
  if (options.mlp_tile_len < 0) {
    return refuse("--mlp-tile " + std::to_string(options.mlp_tile_len) +
                  ": expected a number of tokens, or auto");
  }
  if (options.memory_limit_bytes < 0) {
    return refuse("--memory-limit must not be negative");
  }
  if (options.pool_limit_bytes < 0) {
    return refuse("--pool-limit must not be negative");
  }
  return Ok{};
}

// The largest chunk up to 2048 whose peak fits; 1 if none does. The peak grows with the chunk.
std::int64_t largest_fitting_chunk(const ModelContext& model, ResolvedRequest request) {
  const auto fits = [&](std::int64_t chunk_len) {
    request.session.chunk_len = chunk_len;
    return fits_by_formula(model, request);
  };
  std::int64_t high = std::min(kLargestAutoChunk, request.session.prompt_len);
  if (request.memory_limit_bytes == 0 || fits(high)) {
    return high;
  }
  std::int64_t low = 1;  // taken even if it does not fit; the plan then says so
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

void set_prompt_len(ResolvedRequest& request, std::int64_t prompt_len) {
  SessionOptions& session = request.session;
  session.prompt_len = prompt_len;
  const std::int64_t room = request.context_len - prompt_len;
  request.max_new_tokens =
      request.wanted_new_tokens < 0 ? room : std::min(request.wanted_new_tokens, room);
  // The last generated token is never fed back.
  session.growth_len = std::max<std::int64_t>(0, request.max_new_tokens - 1);
  if (session.method.whole_prompt()) {
    session.chunk_len = prompt_len;
    session.key_block_len = prompt_len;
    return;
  }
  session.key_block_len = std::min(request.wanted_key_block_len, prompt_len);
  if (!request.chunk_is_auto) {
    session.chunk_len = std::min(request.wanted_chunk_len, prompt_len);
  }
}

Result<ResolvedRequest> resolve_request(const ModelContext& model, const PrefillOptions& options,
                                        std::int64_t prompt_len) {
  ResolvedRequest request;
  TIDEKV_ASSIGN(request.context_len, context_length(*model.config, options));
  TIDEKV_TRY(check_lengths(options, prompt_len, request.context_len));
  TIDEKV_TRY(check_candidates(*model.config, prompt_len));
  SessionOptions& session = request.session;
  session.config = model.config;
  session.weights = model.weights;
  TIDEKV_ASSIGN(session.method, find_method(options.method));
  session.selector = selector_options(session.method, options);
  TIDEKV_TRY(check_selector_options(*session.method.selector, session.selector));
  TIDEKV_ASSIGN(session.quantiser, quantiser_of(session.method, options, model.config->head_dim));
  session.dtype = compute_dtype(model, options.compute_type);
  session.all_rows = options.all_rows;
  session.attention = attention_kind(options.attention);
  session.mlp_tile_len = options.mlp_tile_len;

  request.budget = options.budget;
  request.wanted_new_tokens = options.max_new_tokens;
  request.wanted_key_block_len = options.key_block_len;
  request.wanted_chunk_len =
      options.chunk_len == 0 ? session.method.default_chunk_len : options.chunk_len;
  request.chunk_is_auto = request.wanted_chunk_len == 0 && !session.method.whole_prompt();
  set_prompt_len(request, prompt_len);
  request.memory_limit_bytes = options.memory_limit_bytes;
  request.pool_limit_bytes = options.pool_limit_bytes;

  if (request.chunk_is_auto) {
    session.chunk_len = largest_fitting_chunk(model, request);
  }
  return request;
}

}  // namespace tidekv
