// The hidden rows of a reference prefill, kept on the host, and how far another prefill's are from
// them. Rows come from any schedule: all of a layer at once, or chunk by chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefill/schedule.h"
#include "tidekv/fidelity.h"

namespace tidekv {

struct HiddenShape {
  std::int64_t num_layers = 0;
  std::int64_t prompt_len = 0;
  std::int64_t hidden_dim = 0;
  DType dtype = DType::kBF16;

  std::int64_t row_bytes() const { return hidden_dim * size_of(dtype); }
  std::int64_t num_bytes() const { return num_layers * prompt_len * row_bytes(); }
};

// Every row that left every layer, as the device holds it. Needs a prefill with all rows of the
// last layer.
class HiddenRows {
 public:
  explicit HiddenRows(const HiddenShape& shape);

  const HiddenShape& shape() const { return shape_; }
  // Rows [begin, begin + count) of a layer.
  std::span<std::byte> rows(std::int64_t layer, std::int64_t begin, std::int64_t count);
  std::span<const std::byte> rows(std::int64_t layer, std::int64_t begin, std::int64_t count) const;

 private:
  std::size_t offset(std::int64_t layer, std::int64_t begin) const;

  HiddenShape shape_;
  std::vector<std::byte> bytes_;  // [num_layers, prompt_len, hidden_dim]
};

// Fills `rows`, which outlives it.
class HiddenRecorder final : public PrefillProbe {
 public:
  HiddenRecorder(Backend& backend, HiddenRows& rows);

  void on_scores(std::int64_t layer, KeyRange range, DeviceView scores) override;
  void on_hidden(std::int64_t layer, DeviceView rows) override;
  void on_commit(std::int64_t layer, const CompactLayer& compact) override;

 private:
  Backend* backend_;
  HiddenRows* rows_;
  std::vector<std::int64_t> seen_;  // rows of each layer so far
};

// Compares with `reference`, which outlives it, and keeps sums only. All memory is taken here.
class HiddenComparison final : public PrefillProbe {
 public:
  // Drift is also reported for every `chunk_len` tokens.
  HiddenComparison(Backend& backend, const HiddenRows& reference, std::int64_t chunk_len);

  void on_scores(std::int64_t layer, KeyRange range, DeviceView scores) override;
  void on_hidden(std::int64_t layer, DeviceView rows) override;
  void on_commit(std::int64_t layer, const CompactLayer& compact) override;

  // Fills the fields of hidden rows.
  void report(TargetFidelity& target) const;

 private:
  struct Sum {
    double relative_l2 = 0;
    double cosine = 0;
    std::int64_t num_rows = 0;

    void add(const Drift& drift);
    Drift mean() const;
  };

  Drift compare_row(std::span<const std::byte> row, std::span<const std::byte> reference);

  Backend* backend_;
  const HiddenRows* reference_;
  std::int64_t chunk_len_;
  std::vector<std::int64_t> seen_;
  std::vector<Sum> by_layer_;
  std::vector<Sum> by_chunk_;
  std::int64_t num_equal_rows_ = 0;
  std::vector<std::byte> staging_;  // some rows
  std::vector<double> row_;
  std::vector<double> reference_row_;
};

}  // namespace tidekv
