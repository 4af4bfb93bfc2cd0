#include "backend/cpu/cpu_backend.h"

#include <algorithm>

#include "backend/cpu/arena.h"
#include "backend/cpu/operations.h"
#include "base/checked_math.h"

#ifdef TIDEKV_CPU_AVX2
#include <cpuid.h>
#endif

namespace tidekv::cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const BackendOptions& options, const Kernels& kernels)
      : Backend(options), kernels_(kernels) {}

  std::int64_t workspace_bytes(std::int64_t head_dim) const override {
    return cpu::workspace_bytes(tasks().num_threads(), head_dim);
  }

 protected:
  Result<std::byte*> do_allocate(std::int64_t id, std::int64_t bytes) override {
    const PlannedAllocation* place = planned(id);
    return place == nullptr ? Arena::allocate(bytes) : arena_.place(place->offset, bytes);
  }
  void do_release(std::int64_t id, std::byte* data, std::int64_t bytes) override {
    if (planned(id) == nullptr) {
      Arena::release_allocated(data, bytes);
    } else {
      arena_.release_placed(data, bytes);
    }
  }
  Status do_reserve(std::int64_t arena_bytes, std::int64_t pool_bytes) override {
    TIDEKV_TRY(arena_.reserve(arena_bytes));
    pool_reserved_ = true;
    return pool_.reserve(pool_bytes);
  }
  Result<std::byte*> do_open_pool(std::int64_t bytes) override {
    if (!pool_reserved_) {
      TIDEKV_TRY(pool_.reserve(bytes));
    }
    return pool_.place(0, bytes);
  }

  Result<DeviceView> do_import_weights(const HostView& weights) override {
    // a view's bytes; weights are only read
    auto* data = const_cast<std::byte*>(weights.data);
    return DeviceView(data, weights.dtype, weights.rows, weights.cols);
  }

  void do_upload(std::span<const std::byte> from, DeviceView to) override {
    copy_bytes(context(), from.data(), to.device_ptr(), to.num_bytes());
  }
  void do_download(DeviceView from, std::span<std::byte> to) override {
    copy_bytes(context(), from.device_ptr(), to.data(), from.num_bytes());
  }
  void do_copy(DeviceView from, DeviceView to) override {
    copy_bytes(context(), from.device_ptr(), to.device_ptr(), from.num_bytes());
  }
  Status do_synchronize() override { return Ok{}; }

  void do_embed(DeviceView table, DeviceView ids, DeviceView out) override {
    cpu::embed(context(), table, ids, out);
  }
  void do_rms_norm(DeviceView x, DeviceView weight, float eps, DeviceView out) override {
    cpu::rms_norm(context(), x, weight, eps, out);
  }
  void do_matmul(DeviceView a, DeviceView w, DeviceView out,
                 const MatmulOptions& options) override {
    cpu::matmul(context(), a, w, out, options);
  }
  void do_gated_matmul(DeviceView a, const Linear<DeviceView>& gate, const Linear<DeviceView>& up,
                       DeviceView out, Phase phase) override {
    cpu::gated_matmul(context(), a, gate, up, out, phase);
  }
  void do_project_heads(DeviceView a, const HeadProjection& projection, DeviceView queries,
                        const KvView& kv) override {
    cpu::project_heads(context(), a, projection, queries, kv);
  }
  void do_rope_angles(DeviceView inverse_freq, Position first, DeviceView out) override {
    cpu::rope_angles(context(), inverse_freq, first, out);
  }
  void do_attend(DeviceView q, const KvView& kv, const AttentionOptions& options) override {
    if (options.phase == Phase::kDecode) {
      cpu::attend_row_by_row(context(), q, kv);
    } else if (options.scores.rows() > 0) {
      cpu::attend_with_whole_scores(context(), q, kv, options);
    } else {
      cpu::attend_prompt(context(), q, kv, options);
    }
  }
  void do_causal_mask(DeviceView mask) override { cpu::causal_mask(context(), mask); }
  void do_swiglu(DeviceView gate, DeviceView up, DeviceView out) override {
    cpu::swiglu(context(), gate, up, out);
  }
  void do_window_lse(DeviceView q, const KvView& kv, DeviceView lse) override {
    cpu::window_lse(context(), q, kv, lse);
  }
  void do_score_keys(DeviceView q, const KvView& kv, DeviceView lse, KeyRange range,
                     DeviceView weights) override {
    cpu::score_keys(context(), q, kv, lse, range, weights);
  }
  void do_score_key_norms(const KvView& kv, KeyRange range, DeviceView scores) override {
    cpu::score_key_norms(context(), kv, range, scores);
  }
  void do_pool_scores(DeviceView weights, const PoolRecipe& recipe, const PoolRanges& ranges,
                      DeviceView raw, DeviceView scores) override {
    cpu::pool_scores(context(), weights, recipe, ranges, raw, scores);
  }
  void do_average_units(DeviceView scores, std::int64_t unit_len, DeviceView averages) override {
    cpu::average_units(context(), scores, unit_len, averages);
  }
  void do_topk_merge(DeviceView scores, std::int64_t first, const TopKState& state) override {
    cpu::topk_merge(context(), scores, first, state);
  }
  void do_count_ids(DeviceView ids, std::int64_t stride, DeviceView counts) override {
    cpu::count_ids(context(), ids, stride, counts);
  }
  void do_topk_take(const TopKState& state, const Mandatory& mandatory,
                    DeviceView retained) override {
    cpu::topk_take(context(), state, mandatory, retained);
  }
  void do_gather_rows(const KvView& from, const HeadLists& slots, const KvView& to) override {
    cpu::gather_rows(context(), from, slots, to);
  }
  void do_observe_queries(DeviceView q, DeviceView angles, std::int64_t num_before,
                          DeviceView moments) override {
    cpu::observe_queries(context(), q, angles, num_before, moments);
  }
  void do_expect_queries(DeviceView moments, std::int64_t num_observed, DeviceView inverse_freq,
                         const PositionsAhead& ahead, DeviceView expected) override {
    cpu::expect_queries(context(), moments, num_observed, inverse_freq, ahead, expected);
  }
  void do_expected_lse(const KvView& kv, DeviceView expected, KeyRange range,
                       DeviceView lse) override {
    cpu::expected_lse(context(), kv, expected, range, lse);
  }
  void do_score_expected(const KvView& kv, DeviceView expected, DeviceView lse, KeyRange range,
                         DeviceView scores) override {
    cpu::score_expected(context(), kv, expected, lse, range, scores);
  }
  void do_mean_directions(const KvView& kv, DeviceView anchors) override {
    cpu::mean_directions(context(), kv, anchors);
  }
  void do_score_directions(const KvView& kv, DeviceView anchors, KeyRange range,
                           DeviceView scores) override {
    cpu::score_directions(context(), kv, anchors, range, scores);
  }
  void do_slots_to_positions(const HeadLists& cached, Position first,
                             const HeadLists& slots) override {
    cpu::slots_to_positions(context(), cached, first, slots);
  }
  void do_keep_rows(const HeadLists& slots, const KvView& kv) override {
    cpu::keep_rows(context(), slots, kv);
  }
  void do_quantise_rows(DeviceView x, const QuantisedRows& to) override {
    cpu::quantise_rows(context(), x, to);
  }
  void do_attend_quantised(DeviceView q, const QuantisedKvView& kv) override {
    cpu::attend_quantised(context(), q, kv);
  }

 private:
  Context context() const { return {kernels_, tasks(), workspace()}; }

  const Kernels& kernels_;
  Arena arena_;
  Arena pool_;  // the offload pool: memory like the other, kept apart
  bool pool_reserved_ = false;
};

}  // namespace

std::int64_t workspace_bytes(int num_threads, std::int64_t head_dim) {
  const std::int64_t floats = std::max(matmul_scratch_floats(), attention_scratch_floats(head_dim));
  return num_threads * round_up(floats * std::int64_t{sizeof(float)}, 64);
}

std::unique_ptr<Backend> create_portable(const BackendOptions& options) {
  return std::make_unique<CpuBackend>(options, kPortableKernels);
}

std::unique_ptr<Backend> create_avx2(const BackendOptions& options) {
  TIDEKV_CHECK(avx2_available());
#ifdef TIDEKV_CPU_AVX2
  return std::make_unique<CpuBackend>(options, kAvx2Kernels);
#else
  return create_portable(options);
#endif
}

// That the system saves the registers is part of the compiler's "avx2". F16C has no name that
// every compiler knows, and needs no more of the system.
bool avx2_available() {
#ifdef TIDEKV_CPU_AVX2
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
#else
  return false;
#endif
}

std::unique_ptr<Backend> create_avx512(const BackendOptions& options) {
  TIDEKV_CHECK(avx512_available());
#ifdef TIDEKV_CPU_AVX512
  return std::make_unique<CpuBackend>(options, kAvx512Kernels);
#else
  return create_portable(options);
#endif
}

std::unique_ptr<Backend> create_avx512_bf16(const BackendOptions& options) {
  TIDEKV_CHECK(avx512_bf16_available());
#ifdef TIDEKV_CPU_AVX512
  return std::make_unique<CpuBackend>(options, kAvx512Bf16Kernels);
#else
  return create_portable(options);
#endif
}

bool avx512_bf16_available() {
#ifdef TIDEKV_CPU_AVX512
  return avx512_available() && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool avx512_bf16_suits() {
#ifdef TIDEKV_CPU_AVX512
  return avx512_bf16_available() && __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

bool avx512_available() {
#ifdef TIDEKV_CPU_AVX512
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return false;
#endif
}

}  // namespace tidekv::cpu
