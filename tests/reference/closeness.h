// Holds a backend's numbers against the float64 run, by the measure of Transformers' own rounding.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "reference/fixture.h"
#include "system/model_run.h"

namespace tidekv::testing {

RowErrors measure_rows(std::span<const float> values, const DoubleMatrix& reference);

// Runs `prompt` with method "full", the right answer fed token by token, and expects the stored
// hidden states of every layer and the logits of every answer position to be as close to float64
// as Transformers' own: errors at most 2 times its float32's, or 1.5 times its bfloat16's.
void expect_as_close_as_transformers(const ReferencePrompt& prompt, const BackendEntry& backend,
                                     ComputeType type);

// Runs `prompt` with method "full" in F32 and expects the float64 run's greedy tokens.
void expect_greedy_tokens_of_float64(const ReferencePrompt& prompt, const BackendEntry& backend);

// A prompt compressed in F32 with the fixture's window and kernel, then `num_tokens` decoded.
struct Compression {
  std::string method;
  std::int64_t budget = 0;
};
RunCapture run_compressed(const ReferencePrompt& prompt, const BackendEntry& backend,
                          const Compression& compression, std::int64_t num_tokens);

// Runs `prompt` with every budget of compact_greedy_ids and expects those tokens.
void expect_compact_greedy_tokens_of_float64(const ReferencePrompt& prompt,
                                             const BackendEntry& backend,
                                             const std::string& method);

// Runs `prompt` with "tidekv-snap" and every budget of `selections` and expects each KV head to
// retain those positions, outside ties that rounding explains.
void expect_positions_of_dense_snapkv(const ReferencePrompt& prompt, const BackendEntry& backend);

// Calls body(layer, head) for every KV head, with a trace for failures.
template <typename Body>
void for_each_head(const std::vector<std::vector<HeadSelection>>& selections, const Body& body) {
  for (std::size_t layer = 0; layer < selections.size(); ++layer) {
    for (std::size_t head = 0; head < selections[layer].size(); ++head) {
      SCOPED_TRACE("layer " + std::to_string(layer) + ", KV head " + std::to_string(head));
      body(layer, head);
    }
  }
}

// A backend of this machine by name, and all their names for test parameters.
const BackendEntry& backend_named(const std::string& name);
std::vector<std::string> available_backend_names();

// Letters, digits and underscores only, as a test's name needs.
std::string test_name(std::string text);

}  // namespace tidekv::testing
