#include "reference/closeness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace tidekv::testing {
namespace {

// How far from float64 a run may be: `factor` times the error of Transformers' in the same type.
struct Allowance {
  std::string sdpa;  // Transformers' runs under its two attentions
  std::string eager;
  double factor = 0.0;
};

Allowance allowance_of(ComputeType type) {
  return type == ComputeType::kF32 ? Allowance{"float32_sdpa", "float32_eager", 2.0}
                                   : Allowance{"bfloat16_sdpa", "bfloat16_eager", 1.5};
}

std::vector<float> floats_of(std::span<const std::byte> bytes, ComputeType type) {
  std::vector<float> values;
  if (type == ComputeType::kF32) {
    values.resize(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<std::uint16_t> bits(bytes.size() / sizeof(std::uint16_t));
  std::memcpy(bits.data(), bytes.data(), bytes.size());
  std::transform(bits.begin(), bits.end(), std::back_inserter(values), bf16_to_float);
  return values;
}

// The prompt rows that the fixture holds, of a layer's [prompt_len, cols].
std::vector<float> stored_rows(const std::vector<float>& hidden, const ReferencePrompt& prompt,
                               std::int64_t cols) {
  std::vector<float> rows;
  for (const std::int64_t row : prompt.rows) {
    const auto begin = hidden.begin() + row * cols;
    rows.insert(rows.end(), begin, begin + cols);
  }
  return rows;
}

// In the last layers a few rows magnify every rounding before them, tens of times more than the
// median row. The mean square follows those rows' luck: two float32 runs of Transformers, equally
// good, are up to 1.8 times apart in it, yet within a few per cent in the median. So the median
// is held to Transformers' default attention, the mean square to the worse of its two.
void expect_within(const RowErrors& errors, const RowErrors& sdpa, const RowErrors& eager,
                   double factor) {
  EXPECT_LE(errors.median_row_rel, factor * sdpa.median_row_rel);
  EXPECT_LE(errors.rms_rel, factor * std::max(sdpa.rms_rel, eager.rms_rel));
}

RunSetup full_cache(const BackendEntry& backend, ComputeType type) {
  RunSetup setup;
  setup.backend = &backend;
  setup.num_threads = 2;
  setup.options.method = "full";
  setup.options.chunk_len = 512;
  setup.options.compute_type = type;
  return setup;
}

}  // namespace

RowErrors measure_rows(std::span<const float> values, const DoubleMatrix& reference) {
  std::vector<double> errors;
  double sum_of_squares = 0.0;
  for (std::int64_t row = 0; row < reference.rows; ++row) {
    const float* ours = values.data() + row * reference.cols;
    const double* theirs = reference.row(row);
    double difference = 0.0;
    double norm = 0.0;
    for (std::int64_t col = 0; col < reference.cols; ++col) {
      difference += std::pow(static_cast<double>(ours[col]) - theirs[col], 2);
      norm += std::pow(theirs[col], 2);
    }
    errors.push_back(std::sqrt(difference / norm));
    sum_of_squares += difference / norm;
  }
  std::sort(errors.begin(), errors.end());
  return {.rms_rel = std::sqrt(sum_of_squares / static_cast<double>(errors.size())),
          .median_row_rel = errors[(errors.size() - 1) / 2]};
}

void expect_as_close_as_transformers(const ReferencePrompt& prompt, const BackendEntry& backend,
                                     ComputeType type) {
  RunSetup setup = full_cache(backend, type);
  std::vector<std::vector<float>> logits;
  setup.options.all_rows = true;
  setup.options.max_new_tokens = prompt.logits.rows;
  setup.forced_tokens = prompt.answer_ids;
  setup.logits = &logits;
  const RunCapture run = run_model(ModelFolder(prompt.model), prompt.prompt_ids, setup);

  const Allowance allowed = allowance_of(type);
  const RunErrors& sdpa = prompt.errors.at(allowed.sdpa);
  const RunErrors& eager = prompt.errors.at(allowed.eager);
  ASSERT_EQ(run.layers.size(), prompt.hidden.size());
  for (std::size_t layer = 0; layer < run.layers.size(); ++layer) {
    SCOPED_TRACE("hidden states of layer " + std::to_string(layer));
    const DoubleMatrix& reference = prompt.hidden[layer];
    const std::vector<float> hidden = floats_of(run.layers[layer].hidden, type);
    ASSERT_EQ(hidden.size(), prompt.prompt_ids.size() * static_cast<std::size_t>(reference.cols));
    expect_within(measure_rows(stored_rows(hidden, prompt, reference.cols), reference),
                  sdpa.hidden[layer], eager.hidden[layer], allowed.factor);
  }

  SCOPED_TRACE("logits");
  std::vector<float> rows;
  for (const std::vector<float>& row : logits) {
    rows.insert(rows.end(), row.begin(), row.end());
  }
  ASSERT_EQ(rows.size(), prompt.logits.values.size());
  expect_within(measure_rows(rows, prompt.logits), sdpa.logits, eager.logits, allowed.factor);
}

void expect_greedy_tokens_of_float64(const ReferencePrompt& prompt, const BackendEntry& backend) {
  RunSetup setup = full_cache(backend, ComputeType::kF32);
  setup.capture_layers = false;
  setup.options.max_new_tokens = static_cast<std::int64_t>(prompt.greedy_ids.size());
  const RunCapture run = run_model(ModelFolder(prompt.model), prompt.prompt_ids, setup);
  EXPECT_EQ(run.tokens, prompt.greedy_ids);
}

const BackendEntry& backend_named(const std::string& name) {
  const std::vector<const BackendEntry*> entries = available_backends();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const BackendEntry* entry) { return entry->name == name; });
  if (found == entries.end()) {
    std::abort();
  }
  return **found;
}

std::vector<std::string> available_backend_names() {
  std::vector<std::string> names;
  for (const BackendEntry* entry : available_backends()) {
    names.emplace_back(entry->name);
  }
  return names;
}

std::string test_name(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

}  // namespace tidekv::testing
