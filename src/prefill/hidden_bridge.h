// Hidden states between two layers (Fig. 2): the output chunk of a layer replaces the input chunk
// it consumed, so one buffer serves all layers. Prompt-wide, or, where a chunk goes through all
// layers before the next begins, one chunk long.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"

namespace tidekv {

// Tokens [begin, begin + len) of the prompt.
struct Chunk {
  std::int64_t begin = 0;
  std::int64_t len = 0;
};

class HiddenBridge {
 public:
  static Result<HiddenBridge> open(Backend& backend, DType dtype, std::int64_t num_rows,
                                   std::int64_t hidden_dim);

  // From now on holds the tokens from position `begin` on: a row each, their embeddings.
  Status embed(Backend& backend, DeviceView table, std::span<const std::int32_t> tokens,
               std::int64_t begin);

  // The chunk's slot: [len, d_model].
  DeviceView slot(const Chunk& chunk) const {
    return rows_.rows_at(chunk.begin - begin_, chunk.len);
  }
  DeviceView rows() const { return rows_.rows_at(0, len_); }
  DeviceView last_row() const { return rows_.rows_at(len_ - 1, 1); }

 private:
  Buffer buffer_;
  DeviceView rows_;
  std::int64_t begin_ = 0;  // position of the first row
  std::int64_t len_ = 0;    // rows in use
};

}  // namespace tidekv
