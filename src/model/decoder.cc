#include "model/decoder.h"

namespace tidekv {

std::int64_t OutputHead::num_bytes(const ModelConfig& config, DType dtype) {
  return config.hidden_dim * size_of(dtype) + config.vocab_size * size_of(DType::kF32);
}

Result<OutputHead> OutputHead::open(Backend& backend, const ModelConfig& config, DType dtype) {
  OutputHead head;
  TIDEKV_ASSIGN(head.normed_buffer_,
                backend.allocate({{Component::kActivations, config.hidden_dim * size_of(dtype)}}));
  head.normed_ = head.normed_buffer_.view(dtype, 1, config.hidden_dim);
  TIDEKV_ASSIGN(head.logits_buffer_,
                backend.allocate({{Component::kLogits, config.vocab_size * size_of(DType::kF32)}}));
  head.logits_ = head.logits_buffer_.view(DType::kF32, 1, config.vocab_size);
  return head;
}

DeviceView OutputHead::logits(Backend& backend, const ModelConfig& config, const DeviceModel& model,
                              DeviceView hidden) const {
  backend.rms_norm(hidden, model.final_norm, static_cast<float>(config.rms_norm_eps), normed_);
  // One row whatever the prompt, so what suits a generated token suits the last of a prompt.
  backend.matmul(normed_, model.output, logits_, {.phase = Phase::kDecode});
  return logits_;
}

}  // namespace tidekv
