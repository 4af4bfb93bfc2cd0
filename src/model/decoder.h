// The ends of the model: embedding in, logits out.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "model/config.h"
#include "model/weights.h"

namespace tidekv {

// Final norm and output matrix for one row, and the buffers they need.
class OutputHead {
 public:
  // Logits [1, vocab] f32 (component kLogits) and one normed row (kActivations).
  static Result<OutputHead> open(Backend& backend, const ModelConfig& config, DType dtype);

  // hidden [1, d_model] -> logits [1, vocab] f32, valid until the next call.
  DeviceView logits(Backend& backend, const ModelConfig& config, const DeviceModel& model,
                    DeviceView hidden) const;

  static std::int64_t num_bytes(const ModelConfig& config, DType dtype);

 private:
  Buffer normed_buffer_;
  Buffer logits_buffer_;
  DeviceView normed_;
  DeviceView logits_;
};

}  // namespace tidekv
