#include "backend/backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace tidekv {
namespace {

bool is_activation(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }
bool is_weight(DType dtype) { return dtype != DType::kI32; }
bool is_plain_weight(DType dtype) { return is_weight(dtype) && !is_quantised(dtype); }

void check_shape(DeviceView view, std::int64_t rows, std::int64_t cols) {
  TIDEKV_CHECK_OP(view.rows(), ==, rows);
  TIDEKV_CHECK_OP(view.cols(), ==, cols);
}

// What rows `a` are multiplied with.
void check_factor(DeviceView a, const Linear<DeviceView>& linear) {
  TIDEKV_CHECK(is_weight(linear.weight.dtype()));
  TIDEKV_CHECK_OP(a.cols(), ==, linear.weight.cols());
  if (linear.bias.rows() > 0) {
    TIDEKV_CHECK(is_plain_weight(linear.bias.dtype()));
    check_shape(linear.bias, 1, linear.weight.rows());
  }
}

void check_queries(DeviceView q, const KvView& kv) {
  TIDEKV_CHECK(is_activation(q.dtype()) && kv.keys.dtype() == q.dtype() &&
               kv.values.dtype() == q.dtype());
  check_shape(kv.values, kv.keys.rows(), kv.keys.cols());
  TIDEKV_CHECK_OP(q.cols() % (kv.heads_of_layer() * kv.head_dim()), ==, 0);
  TIDEKV_CHECK_OP(kv.first_head + kv.num_kv_heads(), <=, kv.heads_of_layer());
  for (const HeadSpan& head : kv.heads) {
    TIDEKV_CHECK_OP(head.len, >=, q.rows());
    TIDEKV_CHECK_OP(head.len, <=, head.capacity);
    TIDEKV_CHECK_OP(head.offset + head.capacity, <=, kv.keys.rows());
  }
}

void check_range(const KeyRange& range, const KvView& kv) {
  TIDEKV_CHECK_OP(range.begin, >=, 0);
  for (const HeadSpan& head : kv.heads) {
    TIDEKV_CHECK_OP(range.end, <=, head.len);
  }
}

// Ids and positions are 32-bit numbers.
constexpr std::int64_t kMaxIds = std::int64_t{1} << 31;

void check_lists(const HeadLists& lists) {
  TIDEKV_CHECK(lists.entries.dtype() == DType::kI32);
  check_shape(lists.entries, 1, lists.total());
}

void check_lists(const TopKState& state) {
  TIDEKV_CHECK(state.scores.dtype() == DType::kF32);
  check_lists(HeadLists{state.ids, state.lens});
  check_shape(state.scores, 1, state.ids.cols());
}

// That keys and values of rows `a` have their places behind those of the cache.
void check_room(DeviceView a, const HeadProjection& projection, const KvView& kv) {
  TIDEKV_CHECK(kv.keys.dtype() == a.dtype() && kv.values.dtype() == a.dtype());
  check_shape(kv.values, kv.keys.rows(), kv.keys.cols());
  TIDEKV_CHECK_OP(projection.k.weight.rows(), ==, kv.num_kv_heads() * kv.head_dim());
  TIDEKV_CHECK_OP(projection.v.weight.rows(), ==, projection.k.weight.rows());
  for (const HeadSpan& head : kv.heads) {
    TIDEKV_CHECK_OP(head.len + a.rows(), <=, head.capacity);
    TIDEKV_CHECK_OP(head.offset + head.capacity, <=, kv.keys.rows());
  }
}

void check_quantised(const QuantisedRows& rows, DType dtype, std::int64_t head_dim) {
  TIDEKV_CHECK(rows.bits == 2 || rows.bits == 4);
  TIDEKV_CHECK_OP(rows.group_len, >=, 1);
  TIDEKV_CHECK(rows.codes.dtype() == DType::kI32);
  TIDEKV_CHECK(rows.scales.dtype() == dtype && rows.minima.dtype() == dtype);
  const bool by_token = rows.axis == GroupAxis::kTokens;
  TIDEKV_CHECK_OP((by_token ? rows.num_rows() : head_dim) % rows.group_len, ==, 0);
  check_shape(rows.codes, rows.num_rows(), QuantisedRows::code_words(head_dim, rows.bits));
  check_shape(rows.scales, rows.scale_row(rows.num_rows()),
              by_token ? head_dim : head_dim / rows.group_len);
  check_shape(rows.minima, rows.scales.rows(), rows.scales.cols());
}

std::int64_t num_q_heads(DeviceView q, const KvView& kv) { return q.cols() / kv.head_dim(); }

// Mask and scores, if attention is to hold them.
void check_held(DeviceView q, const KvView& kv, const AttentionOptions& options) {
  if (options.mask.rows() == 0) {
    TIDEKV_CHECK(options.scores.rows() == 0 && options.weights.rows() == 0);
    return;
  }
  TIDEKV_CHECK(options.phase == Phase::kPrefill && options.mask.dtype() == q.dtype());
  check_shape(options.mask, q.rows(), kv.longest_head());
  if (options.scores.rows() > 0) {
    const std::int64_t group = num_q_heads(q, kv) / kv.heads_of_layer();
    TIDEKV_CHECK(options.scores.dtype() == DType::kF32 && options.weights.dtype() == DType::kF32);
    check_shape(options.scores, group * q.rows(), kv.total_rows());
    check_shape(options.weights, options.scores.rows(), options.scores.cols());
  }
}

}  // namespace

Backend::Backend(const BackendOptions& options)
    : pool_(options.pool),
      accountant_(options.timeline_capacity),
      fail_allocation_(options.fail_allocation),
      cancel_(options.cancel) {}

Result<Buffer> Backend::allocate(std::initializer_list<Charge> charges) {
  TIDEKV_CHECK_OP(charges.size(), <=, Buffer::kMaxCharges);
  std::int64_t bytes = 0;
  for (const Charge& charge : charges) {
    TIDEKV_CHECK_OP(charge.bytes, >=, 0);
    bytes += charge.bytes;
  }
  const std::int64_t id = num_allocations_++;
  if (id == fail_allocation_) {
    return Error{ErrorCode::kOutOfMemory, "out of device memory allocating " +
                                              std::to_string(bytes) + " bytes of " +
                                              std::string(name_of(charges.begin()->component))};
  }
  if (!plan_.empty()) {
    TIDEKV_CHECK_OP(id, <, plan_.size());
    TIDEKV_CHECK_OP(bytes, ==, plan_[static_cast<std::size_t>(id)].bytes);
  }
  TIDEKV_ASSIGN(std::byte * data, do_allocate(id, bytes));
  Buffer buffer;
  buffer.backend_ = this;
  buffer.data_ = data;
  buffer.bytes_ = bytes;
  buffer.id_ = id;
  std::copy(charges.begin(), charges.end(), buffer.charges_.begin());
  accountant_.add(charges);
  return buffer;
}

void Backend::release(Buffer& buffer) {
  accountant_.remove(buffer.charges_);
  do_release(buffer.id_, buffer.data_, buffer.bytes_);
}

Status Backend::reserve(const MemoryPlan& plan) {
  TIDEKV_CHECK_OP(num_allocations_, ==, 0);
  TIDEKV_TRY(do_reserve(plan.arena_bytes, plan.pool_bytes));
  plan_ = plan.allocations;
  reserved_bytes_ = plan.arena_bytes;
  reserved_pool_bytes_ = plan.pool_bytes;
  return Ok{};
}

void Backend::repeat_allocations_from(std::int64_t number) {
  TIDEKV_CHECK(number >= 0 && number <= num_allocations_);
  num_allocations_ = number;
}

const PlannedAllocation* Backend::planned(std::int64_t id) const {
  return plan_.empty() ? nullptr : &plan_[static_cast<std::size_t>(id)];
}

void Backend::use_workspace(DeviceView workspace) { workspace_ = workspace; }

Result<DeviceView> Backend::import_weights(const HostView& weights) {
  TIDEKV_CHECK_OP(weights.cols % traits_of(weights.dtype).block_len, ==, 0);
  TIDEKV_ASSIGN(const DeviceView view, do_import_weights(weights));
  const Charge charge{Component::kWeights, weights.num_bytes()};
  accountant_.add({&charge, 1});
  return view;
}

Result<PoolView> Backend::open_pool(DType dtype, std::int64_t rows, std::int64_t cols) {
  const std::int64_t bytes = rows * row_bytes(dtype, cols);
  TIDEKV_CHECK_OP(pool_ledger_.peak_bytes, ==, 0);
  if (!plan_.empty()) {
    TIDEKV_CHECK_OP(bytes, ==, reserved_pool_bytes_);
  }
  TIDEKV_ASSIGN(std::byte * data, do_open_pool(bytes));
  pool_ledger_.peak_bytes = bytes;
  return PoolView(DeviceView(data, dtype, rows, cols));
}

void Backend::store(DeviceView from, PoolView to) {
  copy(from, to.bytes_);
  pool_ledger_.down.add(from.num_bytes());
}

void Backend::load(PoolView from, DeviceView to) {
  copy(from.bytes_, to);
  pool_ledger_.up.add(to.num_bytes());
}

void Backend::download(PoolView from, std::span<std::byte> to) { download(from.bytes_, to); }

void Backend::upload(std::span<const std::byte> from, DeviceView to) {
  TIDEKV_CHECK_OP(from.size(), ==, to.num_bytes());
  do_upload(from, to);
}

void Backend::download(DeviceView from, std::span<std::byte> to) {
  TIDEKV_CHECK_OP(from.num_bytes(), ==, to.size());
  do_download(from, to);
}

void Backend::copy(DeviceView from, DeviceView to) {
  TIDEKV_CHECK(from.dtype() == to.dtype());
  check_shape(to, from.rows(), from.cols());
  do_copy(from, to);
}

Status Backend::synchronize() { return do_synchronize(); }

void Backend::embed(DeviceView table, DeviceView ids, DeviceView out) {
  TIDEKV_CHECK(ids.dtype() == DType::kI32 && is_weight(table.dtype()));
  TIDEKV_CHECK(is_activation(out.dtype()));
  check_shape(ids, 1, out.rows());
  check_shape(out, out.rows(), table.cols());
  do_embed(table, ids, out);
}

void Backend::rms_norm(DeviceView x, DeviceView weight, float eps, DeviceView out) {
  TIDEKV_CHECK(is_activation(x.dtype()) && out.dtype() == x.dtype());
  TIDEKV_CHECK(is_plain_weight(weight.dtype()));
  check_shape(weight, 1, x.cols());
  check_shape(out, x.rows(), x.cols());
  do_rms_norm(x, weight, eps, out);
}

void Backend::matmul(DeviceView a, DeviceView w, DeviceView out, const MatmulOptions& options) {
  TIDEKV_CHECK(is_activation(a.dtype()));
  TIDEKV_CHECK(out.dtype() == DType::kF32 || out.dtype() == a.dtype());
  check_shape(out, a.rows(), w.rows());
  check_factor(a, {w, options.bias});
  do_matmul(a, w, out, options);
}

void Backend::gated_matmul(DeviceView a, const Linear<DeviceView>& gate,
                           const Linear<DeviceView>& up, DeviceView out, Phase phase) {
  TIDEKV_CHECK(is_activation(a.dtype()) && out.dtype() == a.dtype());
  check_factor(a, gate);
  check_factor(a, up);
  check_shape(out, a.rows(), gate.weight.rows());
  check_shape(up.weight, gate.weight.rows(), gate.weight.cols());
  do_gated_matmul(a, gate, up, out, phase);
}

void Backend::project_heads(DeviceView a, const HeadProjection& projection, DeviceView queries,
                            const KvView& kv) {
  const auto check_heads = [&](const Linear<DeviceView>& linear, DeviceView norm) {
    check_factor(a, linear);
    if (norm.rows() > 0) {
      TIDEKV_CHECK(is_plain_weight(norm.dtype()));
      check_shape(norm, 1, kv.head_dim());
    }
  };
  TIDEKV_CHECK(is_activation(a.dtype()) && projection.angles.dtype() == DType::kF32);
  check_heads(projection.q, projection.q_norm);
  check_heads(projection.k, projection.k_norm);
  check_heads(projection.v, {});
  check_shape(projection.angles, a.rows(), kv.head_dim());
  if (queries.rows() > 0) {
    TIDEKV_CHECK(queries.dtype() == a.dtype());
    TIDEKV_CHECK_OP(queries.rows(), <=, a.rows());
    check_shape(queries, queries.rows(), projection.q.weight.rows());
    TIDEKV_CHECK_OP(queries.cols() % kv.head_dim(), ==, 0);
  }
  check_room(a, projection, kv);
  do_project_heads(a, projection, queries, kv);
}

void Backend::rope_angles(DeviceView inverse_freq, Position first, DeviceView out) {
  TIDEKV_CHECK(inverse_freq.dtype() == DType::kF32 && out.dtype() == DType::kF32);
  check_shape(inverse_freq, 1, out.cols() / 2);
  TIDEKV_CHECK_OP(index_of(first), >=, 0);
  do_rope_angles(inverse_freq, first, out);
}

void Backend::attend(DeviceView q, const KvView& kv, const AttentionOptions& options) {
  check_queries(q, kv);
  check_held(q, kv, options);
  if (options.lse.count > 0) {
    const LseColumns& columns = options.lse;
    TIDEKV_CHECK(columns.lse.dtype() == DType::kF32 && options.phase == Phase::kPrefill);
    TIDEKV_CHECK_OP(columns.lse.rows(), ==, 2 * num_q_heads(q, kv));
    TIDEKV_CHECK_OP(columns.count, <=, q.rows());
    TIDEKV_CHECK(columns.begin >= 0 && columns.begin + columns.count <= columns.lse.cols());
  }
  do_attend(q, kv, options);
}

void Backend::causal_mask(DeviceView mask) {
  TIDEKV_CHECK(is_activation(mask.dtype()));
  TIDEKV_CHECK_OP(mask.rows(), <=, mask.cols());
  do_causal_mask(mask);
}

void Backend::swiglu(DeviceView gate, DeviceView up, DeviceView out) {
  TIDEKV_CHECK(is_activation(gate.dtype()) && up.dtype() == gate.dtype() &&
               out.dtype() == gate.dtype());
  check_shape(up, gate.rows(), gate.cols());
  check_shape(out, gate.rows(), gate.cols());
  do_swiglu(gate, up, out);
}

void Backend::window_lse(DeviceView q, const KvView& kv, DeviceView lse) {
  check_queries(q, kv);
  TIDEKV_CHECK(lse.dtype() == DType::kF32);
  check_shape(lse, 2 * num_q_heads(q, kv), q.rows());
  do_window_lse(q, kv, lse);
}

void Backend::score_keys(DeviceView q, const KvView& kv, DeviceView lse, KeyRange range,
                         DeviceView weights) {
  check_queries(q, kv);
  check_shape(lse, 2 * num_q_heads(q, kv), q.rows());
  TIDEKV_CHECK(lse.dtype() == DType::kF32 && weights.dtype() == DType::kF32);
  check_shape(weights, num_q_heads(q, kv) * q.rows(), range.len());
  check_range(range, kv);
  do_score_keys(q, kv, lse, range, weights);
}

void Backend::score_key_norms(const KvView& kv, KeyRange range, DeviceView scores) {
  TIDEKV_CHECK(is_activation(kv.keys.dtype()) && scores.dtype() == DType::kF32);
  check_range(range, kv);
  check_shape(scores, kv.num_kv_heads(), range.len());
  do_score_key_norms(kv, range, scores);
}

void Backend::pool_scores(DeviceView weights, const PoolRecipe& recipe, const PoolRanges& ranges,
                          DeviceView raw, DeviceView scores) {
  const std::int64_t halo = recipe.kernel_len / 2;
  TIDEKV_CHECK(recipe.kernel_len % 2 == 1);
  TIDEKV_CHECK(weights.dtype() == DType::kF32 && raw.dtype() == DType::kF32 &&
               scores.dtype() == DType::kF32);
  TIDEKV_CHECK_OP(weights.cols(), ==, ranges.scored.len());
  TIDEKV_CHECK_OP(ranges.window_len, >=, 1);
  TIDEKV_CHECK_OP(weights.rows() % (raw.rows() * ranges.window_len), ==, 0);
  check_shape(raw, scores.rows(), ranges.scored.len());
  check_shape(scores, raw.rows(), ranges.wanted.len());
  TIDEKV_CHECK_OP(ranges.scored.begin, <=, std::max<std::int64_t>(0, ranges.wanted.begin - halo));
  TIDEKV_CHECK_OP(ranges.scored.end, >=, std::min(ranges.prefix_len, ranges.wanted.end + halo));
  TIDEKV_CHECK_OP(ranges.scored.end, <=, ranges.prefix_len);
  do_pool_scores(weights, recipe, ranges, raw, scores);
}

void Backend::average_units(DeviceView scores, std::int64_t unit_len, DeviceView averages) {
  TIDEKV_CHECK(scores.dtype() == DType::kF32 && averages.dtype() == DType::kF32);
  TIDEKV_CHECK_OP(unit_len, >=, 1);
  check_shape(averages, scores.rows(), ceil_div(scores.cols(), unit_len));
  do_average_units(scores, unit_len, averages);
}

void Backend::topk_merge(DeviceView scores, std::int64_t first, const TopKState& state) {
  TIDEKV_CHECK(scores.dtype() == DType::kF32);
  TIDEKV_CHECK_OP(scores.rows(), ==, state.lens.size());
  check_lists(state);
  TIDEKV_CHECK(first >= 0 && first + scores.cols() <= kMaxIds);
  do_topk_merge(scores, first, state);
}

void Backend::count_ids(DeviceView ids, std::int64_t stride, DeviceView counts) {
  TIDEKV_CHECK(ids.dtype() == DType::kI32 && counts.dtype() == DType::kI32);
  TIDEKV_CHECK(ids.rows() == 1 && counts.rows() == 1);
  TIDEKV_CHECK(stride >= 1 && counts.cols() * stride <= kMaxIds);
  do_count_ids(ids, stride, counts);
}

void Backend::topk_take(const TopKState& state, const Mandatory& mandatory, DeviceView retained) {
  check_lists(state);
  TIDEKV_CHECK(retained.dtype() == DType::kI32);
  const auto num_heads = static_cast<std::int64_t>(state.lens.size());
  check_shape(retained, 1, state.ids.cols() + num_heads * mandatory.count());
  for (const std::int64_t len : state.lens) {
    TIDEKV_CHECK_OP(state.num_offered, >=, len);
  }
  do_topk_take(state, mandatory, retained);
}

void Backend::gather_rows(const KvView& from, const HeadLists& slots, const KvView& to) {
  TIDEKV_CHECK(from.keys.dtype() == to.keys.dtype());
  TIDEKV_CHECK_OP(from.num_kv_heads(), ==, to.num_kv_heads());
  TIDEKV_CHECK_OP(from.head_dim(), ==, to.head_dim());
  check_lists(slots);
  TIDEKV_CHECK_OP(slots.num_heads(), ==, from.num_kv_heads());
  for (std::size_t head = 0; head < slots.lens.size(); ++head) {
    TIDEKV_CHECK_OP(to.heads[head].len + slots.lens[head], <=, to.heads[head].capacity);
  }
  do_gather_rows(from, slots, to);
}

void Backend::mean_directions(const KvView& kv, DeviceView anchors) {
  TIDEKV_CHECK(is_activation(kv.keys.dtype()) && anchors.dtype() == DType::kF32);
  check_shape(anchors, kv.num_kv_heads(), kv.head_dim());
  for (const HeadSpan& head : kv.heads) {
    TIDEKV_CHECK_OP(head.len, >=, 1);
  }
  do_mean_directions(kv, anchors);
}

void Backend::score_directions(const KvView& kv, DeviceView anchors, KeyRange range,
                               DeviceView scores) {
  TIDEKV_CHECK(is_activation(kv.keys.dtype()) && anchors.dtype() == DType::kF32 &&
               scores.dtype() == DType::kF32);
  check_shape(anchors, kv.num_kv_heads(), kv.head_dim());
  check_shape(scores, kv.num_kv_heads(), range.len());
  check_range(range, kv);
  do_score_directions(kv, anchors, range, scores);
}

void Backend::observe_queries(DeviceView q, DeviceView angles, std::int64_t num_before,
                              DeviceView moments) {
  TIDEKV_CHECK(is_activation(q.dtype()) && angles.dtype() == DType::kF32 &&
               moments.dtype() == DType::kF32);
  check_shape(angles, q.rows(), moments.cols());
  check_shape(moments, q.cols() / moments.cols() * (moments.cols() + 1), moments.cols());
  TIDEKV_CHECK_OP(num_before, >=, 0);
  do_observe_queries(q, angles, num_before, moments);
}

void Backend::expect_queries(DeviceView moments, std::int64_t num_observed, DeviceView inverse_freq,
                             const PositionsAhead& ahead, DeviceView expected) {
  TIDEKV_CHECK(moments.dtype() == DType::kF32 && inverse_freq.dtype() == DType::kF32 &&
               expected.dtype() == DType::kF32);
  check_shape(inverse_freq, 1, moments.cols() / 2);
  check_shape(expected, moments.rows(), moments.cols());
  TIDEKV_CHECK(num_observed >= 0 && ahead.count >= 1);
  do_expect_queries(moments, num_observed, inverse_freq, ahead, expected);
}

void Backend::expected_lse(const KvView& kv, DeviceView expected, KeyRange range, DeviceView lse) {
  TIDEKV_CHECK(is_activation(kv.keys.dtype()) && expected.dtype() == DType::kF32 &&
               lse.dtype() == DType::kF32);
  check_shape(expected, lse.rows() / 2 * (kv.head_dim() + 1), kv.head_dim());
  check_shape(lse, lse.rows(), 1);
  check_range(range, kv);
  do_expected_lse(kv, expected, range, lse);
}

void Backend::score_expected(const KvView& kv, DeviceView expected, DeviceView lse, KeyRange range,
                             DeviceView scores) {
  TIDEKV_CHECK(is_activation(kv.keys.dtype()) && expected.dtype() == DType::kF32 &&
               lse.dtype() == DType::kF32 && scores.dtype() == DType::kF32);
  check_shape(expected, lse.rows() / 2 * (kv.head_dim() + 1), kv.head_dim());
  check_shape(scores, kv.num_kv_heads(), range.len());
  check_range(range, kv);
  do_score_expected(kv, expected, lse, range, scores);
}

void Backend::slots_to_positions(const HeadLists& cached, Position first, const HeadLists& slots) {
  check_lists(cached);
  check_lists(slots);
  TIDEKV_CHECK_OP(cached.num_heads(), ==, slots.num_heads());
  TIDEKV_CHECK_OP(index_of(first), >=, 0);
  do_slots_to_positions(cached, first, slots);
}

void Backend::keep_rows(const HeadLists& slots, const KvView& kv) {
  check_lists(slots);
  TIDEKV_CHECK_OP(slots.num_heads(), ==, kv.num_kv_heads());
  for (std::size_t head = 0; head < slots.lens.size(); ++head) {
    TIDEKV_CHECK_OP(slots.lens[head], <=, kv.heads[head].len);
  }
  do_keep_rows(slots, kv);
}

void Backend::quantise_rows(DeviceView x, const QuantisedRows& to) {
  TIDEKV_CHECK(is_activation(x.dtype()));
  TIDEKV_CHECK_OP(to.num_rows(), ==, x.rows());
  check_quantised(to, x.dtype(), x.cols());
  do_quantise_rows(x, to);
}

void Backend::attend_quantised(DeviceView q, const QuantisedKvView& kv) {
  const std::int64_t dim = kv.head_dim();
  const std::int64_t recent_rows = kv.rows_of_head(kv.recent_keys);
  TIDEKV_CHECK(is_activation(q.dtype()));
  TIDEKV_CHECK(kv.recent_keys.dtype() == q.dtype() && kv.recent_values.dtype() == q.dtype());
  TIDEKV_CHECK_OP(q.rows(), ==, 1);
  TIDEKV_CHECK_OP(q.cols() % (kv.num_kv_heads * dim), ==, 0);
  check_shape(kv.recent_keys, kv.num_kv_heads * recent_rows, dim);
  check_shape(kv.recent_values, kv.num_kv_heads * recent_rows, dim);
  check_quantised(kv.keys, q.dtype(), dim);
  check_quantised(kv.values, q.dtype(), dim);
  TIDEKV_CHECK(kv.keys.axis == GroupAxis::kTokens && kv.values.axis == GroupAxis::kChannels);
  TIDEKV_CHECK_OP(kv.num_tokens, >=, 1);
  for (const auto& [rows, count] : {std::pair(&kv.keys, kv.num_quantised_keys),
                                    std::pair(&kv.values, kv.num_quantised_values)}) {
    TIDEKV_CHECK_OP(count, <=, rows->num_rows() / kv.num_kv_heads);
    TIDEKV_CHECK_OP(kv.num_tokens - count, <=, recent_rows);
  }
  do_attend_quantised(q, kv);
}

}  // namespace tidekv
