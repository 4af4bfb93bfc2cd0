// The operations of backend.h as the CPU computes them, for any table of kernels.
//
// Work is cut into tasks that write disjoint outputs and share nothing but their inputs, so neither
// the order of tasks nor the thread that runs one can change a bit. Scratch is the calling thread's
// slice of the workspace; nothing here allocates.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "base/check.h"
#include "base/thread_pool.h"
#include "tensor/view.h"

namespace tidekv::cpu {

// Scratch of one thread, in floats. The largest decides.
std::int64_t matmul_scratch_floats();
std::int64_t attention_scratch_floats(std::int64_t head_dim);

struct Context {
  const Kernels& kernels;
  TaskRunner pool;
  DeviceView workspace;

  // This thread's slice, at least `num_floats` long.
  float* scratch(int thread, std::int64_t num_floats) const {
    const std::int64_t slice = workspace.num_bytes() / pool.num_threads() / 64 * 64;
    TIDEKV_CHECK_OP(num_floats * std::int64_t{sizeof(float)}, <=, slice);
    return reinterpret_cast<float*>(workspace.device_ptr() + thread * slice);
  }
};

inline Element element_of(DType dtype) {
  TIDEKV_DCHECK(dtype != DType::kI32 && !is_quantised(dtype));
  return dtype == DType::kF32   ? Element::kF32
         : dtype == DType::kF16 ? Element::kF16
                                : Element::kBF16;
}
inline BlockType block_type_of(DType dtype) {
  TIDEKV_DCHECK(is_quantised(dtype));
  switch (dtype) {
    case DType::kQ40:
      return BlockType::kQ40;
    case DType::kQ41:
      return BlockType::kQ41;
    case DType::kQ50:
      return BlockType::kQ50;
    case DType::kQ51:
      return BlockType::kQ51;
    case DType::kQ4K:
      return BlockType::kQ4K;
    case DType::kQ5K:
      return BlockType::kQ5K;
    case DType::kQ6K:
      return BlockType::kQ6K;
    default:
      return BlockType::kQ80;
  }
}

// The product of rows of two types.
inline Products products_of(const Kernels& kernels, Element a, Element b) {
  const bool in_pairs = kernels.bf16_pairs != nullptr && a == Element::kBF16 && b == Element::kBF16;
  return in_pairs ? *kernels.bf16_pairs
                  : Products{1, kernels.widen, kernels.pack_columns, kernels.multiply};
}

// Element `col` of row `row`; of a quantised row the block that begins there.
inline std::byte* address(DeviceView view, std::int64_t row, std::int64_t col = 0) {
  const DTypeTraits traits = traits_of(view.dtype());
  if (traits.block_len == 1) {
    return view.device_ptr() + (row * view.cols() + col) * traits.block_bytes;
  }
  TIDEKV_DCHECK(col % traits.block_len == 0);
  return view.device_ptr() + row * row_bytes(view.dtype(), view.cols()) +
         row_bytes(view.dtype(), col);
}
inline float* floats(DeviceView view, std::int64_t row = 0) {
  return reinterpret_cast<float*>(address(view, row));
}
inline std::int32_t* integers(DeviceView view, std::int64_t row = 0) {
  return reinterpret_cast<std::int32_t*>(address(view, row));
}

// Calls body(first, count, thread) for pieces of [0, num_rows). A piece has about 16K elements:
// smaller ones cost more to hand out than to compute.
template <typename Body>
void for_row_pieces(const TaskRunner& pool, std::int64_t num_rows, std::int64_t row_elements,
                    const Body& body) {
  constexpr std::int64_t kPieceElements = 1 << 14;
  const std::int64_t rows =
      row_elements >= kPieceElements || row_elements <= 0 ? 1 : kPieceElements / row_elements;
  pool.parallel_for((num_rows + rows - 1) / rows, [&](std::int64_t task, int thread) {
    const std::int64_t first = task * rows;
    body(first, num_rows - first < rows ? num_rows - first : rows, thread);
  });
}

// movement.cc
void copy_bytes(const Context& context, const std::byte* from, std::byte* to, std::int64_t bytes);
void gather_rows(const Context& context, const KvView& from, const HeadLists& slots,
                 const KvView& to);

void slots_to_positions(const Context& context, const HeadLists& cached, Position first,
                        const HeadLists& slots);
void keep_rows(const Context& context, const HeadLists& slots, const KvView& kv);

// activations.cc
void embed(const Context& context, DeviceView table, DeviceView ids, DeviceView out);
void rms_norm(const Context& context, DeviceView x, DeviceView weight, float eps, DeviceView out);
void rope_angles(const Context& context, DeviceView inverse_freq, Position first, DeviceView out);
void swiglu(const Context& context, DeviceView gate, DeviceView up, DeviceView out);

// matmul.cc
void matmul(const Context& context, DeviceView a, DeviceView w, DeviceView out,
            const MatmulOptions& options);
void gated_matmul(const Context& context, DeviceView a, const Linear<DeviceView>& gate,
                  const Linear<DeviceView>& up, DeviceView out, Phase phase);

// head_projection.cc
void project_heads(const Context& context, DeviceView a, const HeadProjection& projection,
                   DeviceView queries, const KvView& kv);

// attention.cc
void attend_prompt(const Context& context, DeviceView q, const KvView& kv,
                   const AttentionOptions& options);
void window_lse(const Context& context, DeviceView q, const KvView& kv, DeviceView lse);
void score_keys(const Context& context, DeviceView q, const KvView& kv, DeviceView lse,
                KeyRange range, DeviceView weights);

// whole_score_attention.cc
void attend_with_whole_scores(const Context& context, DeviceView q, const KvView& kv,
                              const AttentionOptions& options);
void causal_mask(const Context& context, DeviceView mask);

// decode_attention.cc
void attend_row_by_row(const Context& context, DeviceView q, const KvView& kv);

// quantised_rows.cc
void quantise_rows(const Context& context, DeviceView x, const QuantisedRows& to);

// quantised_attention.cc
void attend_quantised(const Context& context, DeviceView q, const QuantisedKvView& kv);

// key_scores.cc
float sum_of_squares(const Kernels& kernels, DeviceView rows, std::int64_t row);
void score_key_norms(const Context& context, const KvView& kv, KeyRange range, DeviceView scores);
void mean_directions(const Context& context, const KvView& kv, DeviceView anchors);
void score_directions(const Context& context, const KvView& kv, DeviceView anchors, KeyRange range,
                      DeviceView scores);

// expected_attention.cc
void observe_queries(const Context& context, DeviceView q, DeviceView angles,
                     std::int64_t num_before, DeviceView moments);
void expect_queries(const Context& context, DeviceView moments, std::int64_t num_observed,
                    DeviceView inverse_freq, const Backend::PositionsAhead& ahead,
                    DeviceView expected);
void expected_lse(const Context& context, const KvView& kv, DeviceView expected, KeyRange range,
                  DeviceView lse);
void score_expected(const Context& context, const KvView& kv, DeviceView expected, DeviceView lse,
                    KeyRange range, DeviceView scores);

// selection.cc
void pool_scores(const Context& context, DeviceView weights, const PoolRecipe& recipe,
                 const Backend::PoolRanges& ranges, DeviceView raw, DeviceView scores);
void average_units(const Context& context, DeviceView scores, std::int64_t unit_len,
                   DeviceView averages);
void topk_merge(const Context& context, DeviceView scores, std::int64_t first,
                const TopKState& state);
void count_ids(const Context& context, DeviceView ids, std::int64_t stride, DeviceView counts);
void topk_take(const Context& context, const TopKState& state, const Backend::Mandatory& mandatory,
               DeviceView retained);

}  // namespace tidekv::cpu
