// Any bytes as a GGUF model: an error that names the file; or a config that planning and RoPE can
// use, and weights, a tokenizer and a chat template that fit it or an error that names the file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "backend/registry.h"
#include "base/check.h"
#include "engine/chat_source.h"
#include "engine/model_source.h"
#include "engine/planner.h"
#include "fuzz_target.h"
#include "model/gguf_config.h"

namespace {

// A file with a path, in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : fd_(::memfd_create("model", 0)) {
    TIDEKV_CHECK_OP(fd_, >=, 0);
    const auto size = static_cast<::ssize_t>(bytes.size());
    TIDEKV_CHECK_OP(::write(fd_, bytes.data(), bytes.size()), ==, size);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

template <typename T>
bool ok_or_named(const tidekv::Result<T>& result, const std::string& path) {
  TIDEKV_CHECK(result.ok() || result.error().message.find(path) != std::string::npos);
  return result.ok();
}

// Without weights: what a plan of the longest prompt starts from.
void check_config(const tidekv::ModelConfig& config) {
  TIDEKV_CHECK_OP(config.group_size() * config.num_kv_heads, ==, config.num_q_heads);
  TIDEKV_CHECK(std::isfinite(config.rms_norm_eps) && config.rms_norm_eps > 0.0);
  for (const float f : tidekv::rope_inverse_frequencies(config.rope, config.head_dim)) {
    TIDEKV_CHECK(std::isfinite(f) && f > 0.0F);
  }
  for (const std::int32_t id : config.eos_token_ids) {
    TIDEKV_CHECK(id >= 0 && id < config.vocab_size);
  }
  const tidekv::HostModel shapes = tidekv::shapes_of(config);
  const tidekv::ModelContext model{&config, &shapes, &tidekv::backend_entries().back()};
  const auto request = tidekv::resolve_request(model, {}, config.max_positions);
  if (request.ok()) {
    TIDEKV_CHECK_OP(tidekv::formula_report(model, request.value()).closed_form_peak_bytes, >, 0);
  }
}

void check_source(const tidekv::ModelSource& source, const std::string& path) {
  const tidekv::ModelConfig& config = source.model.config;
  TIDEKV_CHECK_OP(tidekv::num_parameters(source.model.weights), ==,
                  tidekv::num_parameters(tidekv::shapes_of(config)));
  TIDEKV_CHECK_OP(tidekv::weights_bytes(source.model.weights), <=,
                  source.model.file.mapped_bytes());
  TIDEKV_CHECK_OP(source.tokenizer->vocab_size(), <=, config.vocab_size);
  ok_or_named(tidekv::read_chat_source(path, source), path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  constexpr std::string_view kMagic = "GGUF";  // or it would be safetensors, another target's
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min(size, kMagic.size())))) {
    return 0;
  }
  const MemoryFile file(bytes);
  const std::string path = file.path();
  const auto tensors = tidekv::TensorFile::open(path);
  if (!ok_or_named(tensors, path)) {
    return 0;
  }
  const auto config = tidekv::read_gguf_config(tensors.value());
  if (ok_or_named(config, path)) {
    check_config(config.value());
  }
  const auto source = tidekv::ModelSource::open(path);
  if (ok_or_named(source, path)) {
    TIDEKV_CHECK(config.ok());
    check_source(source.value(), path);
  }
  return 0;
}
