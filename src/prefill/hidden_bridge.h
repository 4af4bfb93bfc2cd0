// Prompt-wide hidden states between two layers (Fig. 2): the output chunk of a layer replaces the
// input chunk it consumed, so one buffer [prompt_len, d_model] serves all layers.
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
  static Result<HiddenBridge> open(Backend& backend, DType dtype, std::int64_t prompt_len,
                                   std::int64_t hidden_dim);

  // Fills every row with its token's embedding.
  Status embed(Backend& backend, DeviceView table, std::span<const std::int32_t> tokens);

  // The chunk's slot: [len, d_model].
  DeviceView slot(const Chunk& chunk) const { return rows_.rows_at(chunk.begin, chunk.len); }
  DeviceView rows() const { return rows_; }
  DeviceView last_row() const { return rows_.rows_at(rows_.rows() - 1, 1); }

 private:
  Buffer buffer_;
  DeviceView rows_;
};

}  // namespace tidekv
