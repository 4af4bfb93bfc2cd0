#include "engine/hidden_rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "engine/divergence.h"

namespace tidekv {
namespace {

constexpr std::int64_t kStagedRows = 64;

void widen(std::span<const std::byte> bytes, DType dtype, std::vector<double>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (dtype == DType::kF32) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      out[i] = static_cast<double>(value);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      out[i] = static_cast<double>(bf16_to_float(bits));
    }
  }
}

std::vector<std::int64_t> zeros(std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(count));
}

}  // namespace

HiddenRows::HiddenRows(const HiddenShape& shape)
    : shape_(shape), bytes_(static_cast<std::size_t>(shape.num_bytes())) {
  TIDEKV_CHECK(shape.dtype == DType::kF32 || shape.dtype == DType::kBF16);
}

std::size_t HiddenRows::offset(std::int64_t layer, std::int64_t begin) const {
  return static_cast<std::size_t>((layer * shape_.prompt_len + begin) * shape_.row_bytes());
}

std::span<std::byte> HiddenRows::rows(std::int64_t layer, std::int64_t begin, std::int64_t count) {
  return std::span(bytes_).subspan(offset(layer, begin),
                                   static_cast<std::size_t>(count * shape_.row_bytes()));
}

std::span<const std::byte> HiddenRows::rows(std::int64_t layer, std::int64_t begin,
                                            std::int64_t count) const {
  return std::span(bytes_).subspan(offset(layer, begin),
                                   static_cast<std::size_t>(count * shape_.row_bytes()));
}

HiddenRecorder::HiddenRecorder(Backend& backend, HiddenRows& rows)
    : backend_(&backend), rows_(&rows), seen_(zeros(rows.shape().num_layers)) {}

void HiddenRecorder::on_scores(std::int64_t /*layer*/, KeyRange /*range*/, DeviceView /*scores*/) {}

void HiddenRecorder::on_commit(std::int64_t /*layer*/, const CompactLayer& /*compact*/) {}

void HiddenRecorder::on_hidden(std::int64_t layer, DeviceView rows) {
  std::int64_t& seen = seen_[static_cast<std::size_t>(layer)];
  backend_->download(rows, rows_->rows(layer, seen, rows.rows()));
  seen += rows.rows();
}

void HiddenComparison::Sum::add(const Drift& drift) {
  relative_l2 += drift.relative_l2;
  cosine += drift.cosine;
  num_rows += 1;
}

// Sums of ones are whole numbers: the mean of equal rows is exactly 1.
Drift HiddenComparison::Sum::mean() const {
  const auto count = static_cast<double>(std::max<std::int64_t>(num_rows, 1));
  return {.relative_l2 = relative_l2 / count, .cosine = cosine / count};
}

HiddenComparison::HiddenComparison(Backend& backend, const HiddenRows& reference,
                                   std::int64_t chunk_len)
    : backend_(&backend),
      reference_(&reference),
      chunk_len_(chunk_len),
      seen_(zeros(reference.shape().num_layers)),
      by_layer_(seen_.size()),
      by_chunk_(static_cast<std::size_t>(ceil_div(reference.shape().prompt_len, chunk_len))),
      staging_(static_cast<std::size_t>(kStagedRows * reference.shape().row_bytes())),
      row_(static_cast<std::size_t>(reference.shape().hidden_dim)),
      reference_row_(row_.size()) {}

void HiddenComparison::on_scores(std::int64_t /*layer*/, KeyRange /*range*/,
                                 DeviceView /*scores*/) {}

void HiddenComparison::on_commit(std::int64_t /*layer*/, const CompactLayer& /*compact*/) {}

void HiddenComparison::on_hidden(std::int64_t layer, DeviceView rows) {
  const auto row_bytes = static_cast<std::size_t>(reference_->shape().row_bytes());
  std::int64_t& seen = seen_[static_cast<std::size_t>(layer)];
  for (std::int64_t begin = 0; begin < rows.rows(); begin += kStagedRows) {
    const std::int64_t count = std::min(kStagedRows, rows.rows() - begin);
    const std::span<std::byte> host =
        std::span(staging_).first(static_cast<std::size_t>(count) * row_bytes);
    backend_->download(rows.rows_at(begin, count), host);
    for (std::int64_t row = 0; row < count; ++row, ++seen) {
      const auto at = static_cast<std::size_t>(row) * row_bytes;
      const Drift drift =
          compare_row(host.subspan(at, row_bytes), reference_->rows(layer, seen, 1));
      by_layer_[static_cast<std::size_t>(layer)].add(drift);
      by_chunk_[static_cast<std::size_t>(seen / chunk_len_)].add(drift);
    }
  }
}

Drift HiddenComparison::compare_row(std::span<const std::byte> row,
                                    std::span<const std::byte> reference) {
  if (std::equal(row.begin(), row.end(), reference.begin())) {
    num_equal_rows_ += 1;
    return {};
  }
  widen(row, reference_->shape().dtype, row_);
  widen(reference, reference_->shape().dtype, reference_row_);
  return row_drift(row_, reference_row_);
}

void HiddenComparison::report(TargetFidelity& target) const {
  Sum all;  // layers have as many rows each: the mean of their means
  for (const Sum& layer : by_layer_) {
    target.layers.push_back(layer.mean());
    all.add(target.layers.back());
    target.num_rows += layer.num_rows;
  }
  for (const Sum& chunk : by_chunk_) {
    target.chunks.push_back(chunk.mean());
  }
  target.hidden = all.mean();
  target.num_equal_rows = num_equal_rows_;
}

}  // namespace tidekv
