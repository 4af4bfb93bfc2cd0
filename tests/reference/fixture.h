// What Transformers computed, read from tests/data/reference; tools/reference/README.md says how
// each number was made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tidekv::testing {

// Row-major.
struct DoubleMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;

  const double* row(std::int64_t index) const { return values.data() + index * cols; }
};

// Distance of rows from the float64 run: |value - float64| / |float64| of each, in the Euclidean
// norm.
struct RowErrors {
  double rms_rel = 0.0;
  double median_row_rel = 0.0;  // of an even number, the lower of the middle two
};

// Of one run of Transformers in float32 or bfloat16.
struct RunErrors {
  std::vector<RowErrors> hidden;  // by stored layer, over the stored rows
  RowErrors logits;
};

// What dense SnapKV in float64 retains of one KV head.
struct HeadSelection {
  std::vector<std::int32_t> retained;  // ascending
  double threshold = 0.0;              // the smallest score kept of the prefix
  double float32_error = 0.0;  // Transformers' own: relative, of scores from threshold / 2 on
  double tie_tolerance = 0.0;  // relative to the threshold
  std::int64_t num_near = 0;   // positions that rounding may move across the threshold
  // If num_near > 0: those positions, and those whose score is the threshold.
  std::vector<std::int32_t> near;
};

struct ReferencePrompt {
  std::string model;  // folder or GGUF file, relative to the source tree
  std::string gguf;   // a file of the same weights, the first of a split one; may be empty
  std::vector<std::int32_t> prompt_ids;
  // needle: the right answer; SmolLM2: the first of greedy_ids; toys: random.
  std::vector<std::int32_t> answer_ids;
  std::vector<std::int64_t> rows;  // prompt rows that `hidden` holds

  // In float64.
  std::vector<std::int64_t> layers;  // ascending; of SmolLM2 only some
  std::vector<DoubleMatrix> hidden;  // after each of `layers`: [rows.size(), hidden_size]
  DoubleMatrix logits;               // after the prompt, then after each of answer_ids but the last
  std::vector<std::int32_t> logit_ids;  // the columns of `logits`; empty: the whole vocabulary

  std::map<std::string, RunErrors> errors;  // float32_sdpa, float32_eager, bfloat16_sdpa, ...

  // needle and SmolLM2.
  std::vector<std::int32_t> greedy_ids;  // from the full cache

  // Long prompts of needle and SmolLM2: SnapKV with window 32, kernel 7.
  std::vector<DoubleMatrix> scores;  // needle, by layer: [num_kv_heads, prefix]
  std::map<std::int64_t, std::vector<std::vector<HeadSelection>>> selections;  // [budget][layer]
  std::map<std::int64_t, std::vector<std::int32_t>> compact_greedy_ids;        // [budget]
};

// `name`: "short" or "4k". A fixture that cannot be read ends the test program with the error.
ReferencePrompt read_needle_prompt(const std::string& name);
// `name`: "short", "2k" or "8k".
ReferencePrompt read_smollm2_prompt(const std::string& name);
// `name`: of a folder or GGUF file in tests/data/models.
ReferencePrompt read_toy_prompt(const std::string& name);

}  // namespace tidekv::testing
