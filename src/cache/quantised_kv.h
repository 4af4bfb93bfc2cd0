// KV of one layer in few bits: KIVI's layout.
//
// The oldest tokens are codes, keys in groups along tokens and values in groups along channels; the
// newest are rows as they came. Keys turn into codes residual_len tokens at a time, values one by
// one: so residual_len values are always rows, and fewer keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "cache/layer_kv.h"

namespace tidekv {

class QuantisedKv final : public AttendedKv {
 public:
  // For the tokens of a prompt and those generated. `spans` [num_kv_heads] outlives this object.
  static Result<QuantisedKv> allocate(Backend& backend, const CacheShape& shape,
                                      std::span<HeadSpan> spans);

  // Takes over all tokens of a prompt.
  void fill(Backend& backend, const KvView& prompt);

  // One token at a time.
  KvView room(std::int64_t rows) override;
  void advance(std::int64_t rows) override;
  KeyCounts keys_met(std::int64_t rows) const override;
  void attend(Backend& backend, DeviceView q, const AttentionOptions& options) override;
  // Turns into codes what has been rows for long enough: after the newest token has attended.
  void settle(Backend& backend);

  QuantisedKvView view() const;
  // Calls body(DeviceView) for all bytes of the tokens held: of keys, then of values, each head's
  // codes, scales, minima and rows, in the order of tokens.
  template <typename Body>
  void for_each_view(const Body& body) const;

 private:
  // Keys or values.
  struct Half {
    QuantisedRows codes;             // [num_kv_heads * capacity, ...]
    DeviceView recent;               // [num_kv_heads * recent_len_, D]
    std::int64_t ring_len = 0;       // token t that is no code stands in recent row t % ring_len
    std::int64_t num_quantised = 0;  // tokens
  };

  // Tokens [first, first + count) of a head as codes.
  QuantisedRows codes_at(const Half& half, std::int64_t head, std::int64_t first,
                         std::int64_t count) const {
    return half.codes.rows_at(head * (half.codes.num_rows() / num_kv_heads_) + first, count);
  }
  // The rows of a head's newest tokens, in one piece or two: body(rows, their first token).
  template <typename Body>
  void for_each_recent(const Half& half, std::int64_t head, const Body& body) const;
  void fill_half(Backend& backend, const Half& half, DeviceView rows,
                 std::span<const HeadSpan> heads) const;
  // The next `count` tokens, whose rows lie side by side.
  void quantise_next(Backend& backend, Half& half, std::int64_t count) const;

  Buffer codes_;
  Buffer scales_;
  Buffer recent_;
  Half keys_;
  Half values_;
  std::int64_t num_kv_heads_ = 0;
  std::int64_t residual_len_ = 0;
  std::int64_t recent_len_ = 0;  // most tokens of a head that are rows
  std::int64_t num_tokens_ = 0;
  std::span<HeadSpan> spans_;
};

template <typename Body>
void QuantisedKv::for_each_recent(const Half& half, std::int64_t head, const Body& body) const {
  for (std::int64_t token = half.num_quantised; token < num_tokens_;) {
    const std::int64_t row = token % half.ring_len;
    const std::int64_t count = std::min(num_tokens_ - token, half.ring_len - row);
    body(half.recent.rows_at(head * recent_len_ + row, count), token);
    token += count;
  }
}

template <typename Body>
void QuantisedKv::for_each_view(const Body& body) const {
  for (const Half* half : {&keys_, &values_}) {
    for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
      const QuantisedRows held = codes_at(*half, head, 0, half->num_quantised);
      body(held.codes);
      body(held.scales);
      body(held.minima);
      for_each_recent(*half, head, [&](DeviceView rows, std::int64_t) { body(rows); });
    }
  }
}

}  // namespace tidekv
