// peak_probe FOLDER PROMPT_LEN: one prefill in a process of its own. Prints the planned peak of
// device memory without weights, and VmHWM, in bytes.
#include <cstdio>
#include <cstdlib>

#include "base/thread_pool.h"
#include "engine/planner.h"
#include "io/tensor_file.h"
#include "memory/process_probe.h"
#include "system/model_run.h"

namespace tidekv::testing {
namespace {

Status probe(const char* folder, std::int64_t prompt_len) {
  TIDEKV_ASSIGN(ModelConfig config, read_model_config(folder));
  config.max_positions = std::int64_t{1} << 20;  // memory is asked about, not text quality
  TIDEKV_ASSIGN(const TensorFile file, TensorFile::open(folder));
  TIDEKV_ASSIGN(const HostModel weights, bind_weights(file, config));
  TIDEKV_ASSIGN(const BackendEntry* backend, choose_backend());
  const ModelContext model{&config, &weights, backend, 2};
  PrefillOptions options;
  options.budget = 256;
  options.chunk_len = 2048;
  options.max_new_tokens = 1;
  const std::vector<std::int32_t> prompt = random_prompt(prompt_len, config.vocab_size, 1);
  TIDEKV_ASSIGN(const ResolvedRequest request, resolve_request(model, options, prompt_len));
  TIDEKV_ASSIGN(const Plan plan, make_plan(model, request, false));
  ThreadPool pool(2);
  const auto device = backend->create({.pool = &pool});
  TIDEKV_ASSIGN(const auto session, Session::create(*device, request.session));
  TIDEKV_TRY(device->reserve(plan.memory));
  TIDEKV_TRY(session->prefill(prompt));
  std::printf(
      "%lld %lld\n",
      static_cast<long long>(plan.memory.peak_bytes() - plan.memory.peak[Component::kWeights]),
      static_cast<long long>(process_peak_bytes()));
  return Ok{};
}

}  // namespace
}  // namespace tidekv::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: peak_probe FOLDER PROMPT_LEN\n");
    return 2;
  }
  const tidekv::Status status = tidekv::testing::probe(argv[1], std::atoll(argv[2]));
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
