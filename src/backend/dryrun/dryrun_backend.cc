#include "backend/dryrun/dryrun_backend.h"

#include <algorithm>

namespace tidekv::dryrun {
namespace {

// Views have null data; code that cannot read tensor elements cannot depend on them, so the
// schedule takes the same path as in a run.
class DryRunBackend final : public Backend {
 public:
  DryRunBackend(const BackendOptions& options, std::int64_t workspace_bytes,
                std::vector<TracedAllocation>* trace)
      : Backend(options), workspace_bytes_(workspace_bytes), trace_(trace) {}

  std::int64_t workspace_bytes(std::int64_t /*head_dim*/) const override {
    return workspace_bytes_;
  }

 protected:
  Result<std::byte*> do_allocate(std::int64_t /*id*/, std::int64_t bytes) override {
    trace_->push_back({bytes, clock_++});
    return static_cast<std::byte*>(nullptr);
  }
  void do_release(std::int64_t id, std::byte* /*data*/, std::int64_t /*bytes*/) override {
    (*trace_)[static_cast<std::size_t>(id)].death = clock_++;
  }
  Status do_reserve(std::int64_t /*arena_bytes*/, std::int64_t /*pool_bytes*/) override {
    return Ok{};
  }
  Result<std::byte*> do_open_pool(std::int64_t /*bytes*/) override {
    return static_cast<std::byte*>(nullptr);
  }
  Result<DeviceView> do_import_weights(const HostView& weights) override {
    return DeviceView(nullptr, weights.dtype, weights.rows, weights.cols);
  }
  void do_upload(std::span<const std::byte> /*from*/, DeviceView /*to*/) override {}
  void do_download(DeviceView /*from*/, std::span<std::byte> to) override {
    std::fill(to.begin(), to.end(), std::byte{0});
  }
  void do_copy(DeviceView /*from*/, DeviceView /*to*/) override {}
  Status do_synchronize() override { return Ok{}; }
  void do_embed(DeviceView, DeviceView, DeviceView) override {}
  void do_rms_norm(DeviceView, DeviceView, float, DeviceView) override {}
  void do_matmul(DeviceView, DeviceView, DeviceView, const MatmulOptions&) override {}
  void do_gated_matmul(DeviceView, const Linear<DeviceView>&, const Linear<DeviceView>&, DeviceView,
                       Phase) override {}
  void do_project_heads(DeviceView, const HeadProjection&, DeviceView, const KvView&) override {}
  void do_rope_angles(DeviceView, Position, DeviceView) override {}
  void do_attend(DeviceView, const KvView&, const AttentionOptions&) override {}
  void do_causal_mask(DeviceView) override {}
  void do_swiglu(DeviceView, DeviceView, DeviceView) override {}
  void do_window_lse(DeviceView, const KvView&, DeviceView) override {}
  void do_score_keys(DeviceView, const KvView&, DeviceView, KeyRange, DeviceView) override {}
  void do_score_key_norms(const KvView&, KeyRange, DeviceView) override {}
  void do_pool_scores(DeviceView, const PoolRecipe&, const PoolRanges&, DeviceView,
                      DeviceView) override {}
  void do_average_units(DeviceView, std::int64_t, DeviceView) override {}
  void do_topk_merge(DeviceView, std::int64_t, const TopKState&) override {}
  void do_count_ids(DeviceView, std::int64_t, DeviceView) override {}
  void do_topk_take(const TopKState&, const Mandatory&, DeviceView) override {}
  void do_gather_rows(const KvView&, const HeadLists&, const KvView&) override {}
  void do_mean_directions(const KvView&, DeviceView) override {}
  void do_observe_queries(DeviceView, DeviceView, std::int64_t, DeviceView) override {}
  void do_expect_queries(DeviceView, std::int64_t, DeviceView, const PositionsAhead&,
                         DeviceView) override {}
  void do_expected_lse(const KvView&, DeviceView, KeyRange, DeviceView) override {}
  void do_score_expected(const KvView&, DeviceView, DeviceView, KeyRange, DeviceView) override {}
  void do_score_directions(const KvView&, DeviceView, KeyRange, DeviceView) override {}
  void do_slots_to_positions(const HeadLists&, Position, const HeadLists&) override {}
  void do_keep_rows(const HeadLists&, const KvView&) override {}
  void do_quantise_rows(DeviceView, const QuantisedRows&) override {}
  void do_attend_quantised(DeviceView, const QuantisedKvView&) override {}

 private:
  std::int64_t workspace_bytes_;
  std::vector<TracedAllocation>* trace_;
  std::int64_t clock_ = 0;
};

}  // namespace

std::unique_ptr<Backend> create(const BackendOptions& options, std::int64_t workspace_bytes,
                                std::vector<TracedAllocation>* trace) {
  return std::make_unique<DryRunBackend>(options, workspace_bytes, trace);
}

}  // namespace tidekv::dryrun
