#include "engine/digest.h"

#include <algorithm>
#include <cstring>

namespace tidekv {
namespace {

constexpr std::int64_t kStagingBytes = std::int64_t{1} << 20;

}  // namespace

void Digest64::mix(std::uint64_t word) {
  state_ = (state_ ^ word) * 0xD6E8FEB86659FD93U;
  state_ ^= state_ >> 32;
}

void Digest64::add(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t filled = length_ % 8;
    if (filled == 0 && bytes.size() - at >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, 8);
      mix(word);
      at += 8;
      length_ += 8;
      continue;
    }
    partial_ |= static_cast<std::uint64_t>(bytes[at]) << (8 * filled);
    ++at;
    ++length_;
    if (length_ % 8 == 0) {
      mix(partial_);
      partial_ = 0;
    }
  }
}

std::uint64_t Digest64::value() const {
  Digest64 end = *this;
  end.mix(end.partial_);
  end.mix(end.length_);
  return end.state_;
}

template <typename View>
void DigestProbe::add_rows(Digest64& digest, View rows) {
  // As one long row, so that a row longer than the staging buffer is no special case.
  const std::int64_t total = rows.rows() * rows.cols();
  const View flat = rows.reshaped(total, 1);
  const std::int64_t step = static_cast<std::int64_t>(staging_.size()) / size_of(rows.dtype());
  for (std::int64_t begin = 0; begin < total; begin += step) {
    const View part = flat.rows_at(begin, std::min(step, total - begin));
    const std::span<std::byte> host =
        std::span(staging_).first(static_cast<std::size_t>(part.num_bytes()));
    backend_->download(part, host);
    digest.add(host);
  }
}

DigestProbe::DigestProbe(Backend& backend, const ModelConfig& config)
    : backend_(&backend),
      layers_(static_cast<std::size_t>(config.num_layers)),
      hidden_(layers_.size()),
      staging_(static_cast<std::size_t>(
          std::max(kStagingBytes, std::max(config.hidden_dim, config.head_dim) * 4))) {}

void DigestProbe::on_scores(std::int64_t /*layer*/, KeyRange /*range*/, DeviceView /*scores*/) {}

void DigestProbe::on_hidden(std::int64_t layer, DeviceView rows) {
  add_rows(hidden_[static_cast<std::size_t>(layer)], rows);
}

std::vector<LayerDigest> DigestProbe::layers() const {
  std::vector<LayerDigest> layers = layers_;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    layers[layer].hidden = hidden_[layer].value();
  }
  return layers;
}

void DigestProbe::on_commit(std::int64_t layer, const CompactLayer& compact) {
  Digest64 positions;
  Digest64 cache;
  const std::span<const std::int64_t> lens = compact.retained_lens();
  if (compact.keeps_all()) {
    for (const std::int64_t len : lens) {
      for (std::int64_t position = 0; position < len; ++position) {
        const auto value = static_cast<std::int32_t>(position);
        positions.add(std::as_bytes(std::span(&value, 1)));
      }
    }
  } else {
    add_rows(positions, compact.positions().entries);
  }
  compact.for_each_view([&](auto rows) { add_rows(cache, rows); });
  digest_of(layer).positions = positions.value();
  digest_of(layer).cache = cache.value();
}

}  // namespace tidekv
