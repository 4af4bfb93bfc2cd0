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
  std::string sdpa;   // Transformers' runs under its two attentions
  std::string eager;  // the fixture may be without it
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

// The columns of a row of logits that the fixture holds.
void append_stored_columns(const std::vector<float>& row, const std::vector<std::int32_t>& columns,
                           std::vector<float>& to) {
  if (columns.empty()) {
    to.insert(to.end(), row.begin(), row.end());
  }
  for (const std::int32_t column : columns) {
    to.push_back(row.at(static_cast<std::size_t>(column)));
  }
}

// In the last layers a few rows magnify every rounding before them, tens of times more than the
// median row. The mean square follows those rows' luck: two float32 runs of Transformers, equally
// good, are up to 1.8 times apart in it, yet within a few per cent in the median. So the median
// is held to Transformers' default attention, the mean square to the worse of its two, if both ran.
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

// Equal outside ties that rounding explains: where no score is near the threshold, the sets must be
// the same; elsewhere only the positions near it may be in one and not in the other.
void expect_retained(const std::vector<std::int32_t>& ours, const HeadSelection& reference) {
  ASSERT_EQ(ours.size(), reference.retained.size());
  if (reference.num_near == 0) {
    EXPECT_EQ(ours, reference.retained);
    return;
  }
  std::vector<std::int32_t> different;
  std::set_symmetric_difference(ours.begin(), ours.end(), reference.retained.begin(),
                                reference.retained.end(), std::back_inserter(different));
  EXPECT_TRUE(std::includes(reference.near.begin(), reference.near.end(), different.begin(),
                            different.end()))
      << ::testing::PrintToString(different) << " are not all near the threshold";
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
  const auto found = prompt.errors.find(allowed.eager);
  const RunErrors& eager = found == prompt.errors.end() ? sdpa : found->second;
  for (std::size_t i = 0; i < prompt.layers.size(); ++i) {
    SCOPED_TRACE("hidden states of layer " + std::to_string(prompt.layers[i]));
    const DoubleMatrix& reference = prompt.hidden[i];
    const std::vector<float> hidden =
        floats_of(run.layers.at(static_cast<std::size_t>(prompt.layers[i])).hidden, type);
    ASSERT_EQ(hidden.size(), prompt.prompt_ids.size() * static_cast<std::size_t>(reference.cols));
    expect_within(measure_rows(stored_rows(hidden, prompt, reference.cols), reference),
                  sdpa.hidden[i], eager.hidden[i], allowed.factor);
  }

  SCOPED_TRACE("logits");
  std::vector<float> rows;
  for (const std::vector<float>& row : logits) {
    append_stored_columns(row, prompt.logit_ids, rows);
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

RunCapture run_compressed(const ReferencePrompt& prompt, const BackendEntry& backend,
                          const Compression& compression, std::int64_t num_tokens) {
  RunSetup setup = full_cache(backend, ComputeType::kF32);
  setup.options.method = compression.method;
  setup.options.budget = compression.budget;
  setup.options.window_len = 32;
  setup.options.kernel_len = 7;
  setup.options.max_new_tokens = num_tokens;
  return run_model(ModelFolder(prompt.model), prompt.prompt_ids, setup);
}

void expect_compact_greedy_tokens_of_float64(const ReferencePrompt& prompt,
                                             const BackendEntry& backend,
                                             const std::string& method) {
  for (const auto& [budget, ids] : prompt.compact_greedy_ids) {
    const auto num_tokens = static_cast<std::int64_t>(ids.size());
    EXPECT_EQ(run_compressed(prompt, backend, {method, budget}, num_tokens).tokens, ids)
        << method << ", budget " << budget;
  }
}

void expect_positions_of_dense_snapkv(const ReferencePrompt& prompt, const BackendEntry& backend) {
  for (const auto& entry : prompt.selections) {
    const std::int64_t budget = entry.first;
    const std::vector<std::vector<HeadSelection>>& selections = entry.second;
    SCOPED_TRACE("budget " + std::to_string(budget));
    const RunCapture run = run_compressed(prompt, backend, {"tidekv-snap", budget}, 0);
    ASSERT_EQ(run.layers.size(), selections.size());
    for_each_head(selections, [&](std::size_t layer, std::size_t head) {
      const std::vector<std::int32_t>& positions = run.layers[layer].positions;
      ASSERT_EQ(positions.size(), selections[layer].size() * static_cast<std::size_t>(budget));
      const auto begin = positions.begin() + static_cast<std::int64_t>(head) * budget;
      expect_retained({begin, begin + budget}, selections[layer][head]);
    });
  }
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
