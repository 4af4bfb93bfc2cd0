// What a layer keeps: retained KV rows in position order, their original positions, and room for
// generated rows. Made at the layer's end, or there from the start and cut as chunks pass.
#pragma once

#include <optional>

#include "cache/active_layer.h"
#include "cache/offloaded_kv.h"
#include "cache/quantised_kv.h"
#include "cache/retained.h"

namespace tidekv {

class CompactLayer {
 public:
  CompactLayer() = default;

  // Gathers the rows `retained` names, whose positions move in.
  static Result<CompactLayer> gather(Backend& backend, const CacheShape& shape,
                                     const ActiveLayer& active, Retained retained,
                                     const HeadStorage& storage);

  // Keeps everything, in bytes of its own.
  static Result<CompactLayer> copy_all(Backend& backend, const CacheShape& shape,
                                       const ActiveLayer& active, const HeadStorage& storage);

  // Keeps everything, in few bits.
  static Result<CompactLayer> quantise_all(Backend& backend, const CacheShape& shape,
                                           const ActiveLayer& active, const HeadStorage& storage);

  // Keeps everything: the full KV itself becomes the cache.
  static CompactLayer keep_all(ActiveLayer active, const HeadStorage& storage);

  // Empty, with room for `rows` rows of each head, the growth, and the positions of `cut_rows`
  // rows.
  static Result<CompactLayer> open(Backend& backend, const CacheShape& shape, std::int64_t rows,
                                   std::int64_t cut_rows, const HeadStorage& storage);
  // Empty, in the offload pool; see OffloadedKv.
  static CompactLayer open_offloaded(Backend& backend, OffloadRing& ring, PoolView rows,
                                     const HeadStorage& storage);
  // `rows` rows were appended to every head of a cache that was never cut.
  void count_appended(std::int64_t rows);
  // Holds rows `slots` of `active` from now on, whose first rows are those of this cache and whose
  // others have positions first, first + 1, ...
  void replace(Backend& backend, const ActiveLayer& active, const Retained& slots, Position first);
  // Keeps rows `slots` of its own; those behind the counted ones have positions from `first` on.
  void keep(Backend& backend, const Retained& slots, Position first);

  // The rows of a cache that stores rows.
  LayerKv& kv() { return kv_; }
  const LayerKv& kv() const { return kv_; }
  // The cache in whatever layout.
  AttendedKv& attended();
  // The newest token has attended.
  void settle(Backend& backend);
  // Calls body(DeviceView), or body(PoolView), for all bytes that hold retained tokens of the
  // prompt: keys of every head, then values; those of a cache in few bits as QuantisedKv says.
  template <typename Body>
  void for_each_view(const Body& body) const;

  // Rows each KV head retained from the prompt; generated rows count only where generation cuts.
  std::span<const std::int64_t> retained_lens() const { return lens_; }
  // Of all heads together.
  std::int64_t total_retained() const;
  bool keeps_all() const { return positions_.rows() == 0; }
  // Empty when everything is kept (slot == position).
  HeadLists positions() const { return {positions_, lens_}; }

 private:
  // `slots` name the rows from now on.
  void rename(Backend& backend, const Retained& slots, Position first);

  // As many rows as the heads of `active` hold.
  void count_all(const ActiveLayer& active);

  LayerKv kv_;
  // Or instead of rows on the device:
  std::optional<QuantisedKv> quantised_;
  std::optional<OffloadedKv> offloaded_;
  Buffer positions_buffer_;
  DeviceView positions_;
  std::span<std::int64_t> lens_;
  std::int64_t growth_len_ = 0;
};

template <typename Body>
void CompactLayer::for_each_view(const Body& body) const {
  if (quantised_) {
    quantised_->for_each_view(body);
    return;
  }
  if (offloaded_) {
    offloaded_->for_each_view(lens_.front(), body);
    return;
  }
  const KvView rows = kv_.view();
  for (const DeviceView& slab : {rows.keys, rows.values}) {
    for (std::size_t head = 0; head < lens_.size(); ++head) {
      body(slab.rows_at(rows.heads[head].offset, lens_[head]));
    }
  }
}

}  // namespace tidekv
