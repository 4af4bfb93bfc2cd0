// Any bytes as config.json, and what follows a zero byte as generation_config.json: an error that
// names a file, or a config that planning and RoPE can use.
#include "model/config.h"

#include <cmath>

#include "base/check.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  const std::size_t zero = input.find('\0');
  const std::string generation = zero == std::string::npos ? "" : input.substr(zero + 1);
  const auto config = tidekv::parse_model_config(input.substr(0, zero), generation, "config.json");
  if (!config.ok()) {
    TIDEKV_CHECK(config.error().message.find("config.json: ") != std::string::npos);
    return 0;
  }
  const tidekv::ModelConfig& model = config.value();
  TIDEKV_CHECK_OP(model.group_size() * model.num_kv_heads, ==, model.num_q_heads);
  for (const float f : tidekv::rope_inverse_frequencies(model.rope, model.head_dim)) {
    TIDEKV_CHECK(std::isfinite(f) && f > 0.0F);
  }
  return 0;
}
