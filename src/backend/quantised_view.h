// Keys and values in few bits, as kernels see them.
//
// A row of codes holds one token of one KV head: `bits` bits each, the lowest bits of a word first,
// filled up to whole 32-bit words. What a code stands for is code * scale + minimum of its group:
// of group_len neighbouring channels of the token, or, for keys, of one channel of group_len
// neighbouring tokens, since a key's few large channels are large in every token (KIVI).
#pragma once

#include <cstdint>

#include "base/checked_math.h"
#include "tensor/view.h"

namespace tidekv {

enum class GroupAxis : std::uint8_t { kTokens, kChannels };

struct QuantisedRows {
  DeviceView codes;   // [rows, code_words(D, bits)] i32
  DeviceView scales;  // [rows / group_len, D] along tokens, [rows, D / group_len] along channels
  DeviceView minima;  // the same shape and type
  std::int64_t bits = 0;  // 2 or 4
  std::int64_t group_len = 0;
  GroupAxis axis = GroupAxis::kChannels;

  static constexpr std::int64_t code_words(std::int64_t head_dim, std::int64_t bits) {
    return ceil_div(head_dim * bits, 32);
  }

  std::int64_t num_rows() const { return codes.rows(); }
  std::int64_t head_dim() const {
    return axis == GroupAxis::kTokens ? scales.cols() : scales.cols() * group_len;
  }
  // Row of scales and minima that row `row` of codes has.
  std::int64_t scale_row(std::int64_t row) const {
    return axis == GroupAxis::kTokens ? row / group_len : row;
  }
  // Rows [first, first + count); along tokens in whole groups.
  QuantisedRows rows_at(std::int64_t first, std::int64_t count) const {
    QuantisedRows part = *this;
    const std::int64_t first_scale = scale_row(first);
    const std::int64_t num_scales = scale_row(first + count) - first_scale;
    part.codes = codes.rows_at(first, count);
    part.scales = scales.rows_at(first_scale, num_scales);
    part.minima = minima.rows_at(first_scale, num_scales);
    return part;
  }
};

// Keys and values of one layer: the oldest tokens quantised, the newest as they came. All heads
// have equally many, one head's rows behind the other's.
struct QuantisedKvView {
  QuantisedRows keys;
  QuantisedRows values;
  // [num_kv_heads * recent rows, D]: of token t the key in row t - num_quantised_keys of its head,
  // the value in row t % (rows of a head).
  DeviceView recent_keys;
  DeviceView recent_values;
  std::int64_t num_kv_heads = 0;
  std::int64_t num_tokens = 0;
  std::int64_t num_quantised_keys = 0;  // of each head
  std::int64_t num_quantised_values = 0;

  std::int64_t head_dim() const { return recent_keys.cols(); }
  std::int64_t rows_of_head(DeviceView rows) const { return rows.rows() / num_kv_heads; }
};

}  // namespace tidekv
