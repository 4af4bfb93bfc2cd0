// Holds a backend's numbers against the float64 run, by the measure of Transformers' own rounding.
#pragma once

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

// A backend of this machine by name, and all their names for test parameters.
const BackendEntry& backend_named(const std::string& name);
std::vector<std::string> available_backend_names();

// Letters, digits and underscores only, as a test's name needs.
std::string test_name(std::string text);

}  // namespace tidekv::testing
