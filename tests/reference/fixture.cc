#include "reference/fixture.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/file.h"
#include "io/tensor_file.h"

namespace tidekv::testing {
namespace {

using Json = nlohmann::json;

std::string path_of(const std::string& file) {
  return join_path(TIDEKV_SOURCE_DIR "/tests/data/reference", file);
}

Json read_json(const std::string& file) {
  std::ifstream stream(path_of(file));
  return Json::parse(stream);  // throws with the reason, which ends the test
}

template <typename T>
T value_or_exit(Result<T> result) {
  if (!result.ok()) {
    std::cerr << result.error().message << "\n";
    std::exit(1);
  }
  return std::move(result).value();
}

DoubleMatrix matrix(const TensorFile& file, const std::string& name) {
  const HostView view = value_or_exit(file.matrix(name));
  std::vector<float> floats(static_cast<std::size_t>(view.rows * view.cols));
  std::memcpy(floats.data(), view.data, floats.size() * sizeof(float));
  return {view.rows, view.cols, {floats.begin(), floats.end()}};
}

// A float64 matrix, stored as its float32 rounding and the float32 rounding of the rest.
DoubleMatrix float64_matrix(const TensorFile& file, const std::string& name) {
  DoubleMatrix sum = matrix(file, name + ".hi");
  const DoubleMatrix low = matrix(file, name + ".lo");
  for (std::size_t i = 0; i < sum.values.size(); ++i) {
    sum.values[i] += low.values.at(i);
  }
  return sum;
}

RowErrors row_errors(const Json& json) {
  return {json.at("rms_rel").get<double>(), json.at("median_row_rel").get<double>()};
}

std::map<std::string, RunErrors> all_errors(const Json& json) {
  std::map<std::string, RunErrors> errors;
  for (const auto& [run, fields] : json.items()) {
    for (const Json& layer : fields.at("hidden")) {
      errors[run].hidden.push_back(row_errors(layer));
    }
    errors[run].logits = row_errors(fields.at("logits"));
  }
  return errors;
}

using Ids = std::vector<std::int32_t>;

// Ascending positions: needle's one by one, SmolLM2's as first, count, first, count, ...
Ids retained_positions(const Json& json) {
  if (json.contains("retained")) {
    return json.at("retained").get<Ids>();
  }
  const Ids runs = json.at("retained_runs").get<Ids>();
  Ids positions;
  for (std::size_t i = 0; i < runs.size(); i += 2) {
    for (std::int32_t offset = 0; offset < runs.at(i + 1); ++offset) {
      positions.push_back(runs[i] + offset);
    }
  }
  return positions;
}

HeadSelection head_selection(const Json& json) {
  return {.retained = retained_positions(json),
          .threshold = json.at("threshold").get<double>(),
          .float32_error = json.at("float32_error").get<double>(),
          .tie_tolerance = json.at("tie_tolerance").get<double>(),
          .num_near = json.at("num_near").get<std::int64_t>(),
          .near = json.value("near", Ids{})};
}

std::vector<std::vector<HeadSelection>> layer_selections(const Json& json) {
  std::vector<std::vector<HeadSelection>> layers;
  for (const Json& layer : json) {
    std::vector<HeadSelection>& heads = layers.emplace_back();
    for (const Json& head : layer) {
      heads.push_back(head_selection(head));
    }
  }
  return layers;
}

// What all prompts have in common. `layers`: null if every layer is stored.
ReferencePrompt read_prompt(const std::string& model, const Json& json, const Json& layers,
                            const TensorFile& tensors) {
  ReferencePrompt prompt;
  prompt.model = model;
  prompt.gguf = json.value("gguf", "");
  prompt.prompt_ids = json.at("prompt_ids").get<Ids>();
  prompt.answer_ids = json.at("answer_ids").get<Ids>();
  prompt.rows = json.at("rows").get<std::vector<std::int64_t>>();
  prompt.errors = all_errors(json.at("errors"));
  prompt.logits = float64_matrix(tensors, "logits");
  if (layers.is_null()) {
    prompt.layers.resize(prompt.errors.at("float32_sdpa").hidden.size());
    std::iota(prompt.layers.begin(), prompt.layers.end(), 0);
  } else {
    prompt.layers = layers.get<std::vector<std::int64_t>>();
  }
  for (const std::int64_t layer : prompt.layers) {
    prompt.hidden.push_back(float64_matrix(tensors, "hidden." + std::to_string(layer)));
  }
  return prompt;
}

TensorFile open_tensors(const Json& json) {
  return value_or_exit(TensorFile::open(path_of(json.at("file").get<std::string>())));
}

void read_selections(const Json& json, std::initializer_list<int> budgets,
                     ReferencePrompt& prompt) {
  for (const int budget : budgets) {
    const std::string field = "budget_" + std::to_string(budget);
    prompt.selections[budget] = layer_selections(json.at("snapkv").at(field));
  }
}

// What SmolLM2's fixture lists, from needle's scores: [num_kv_heads, prefix] of one layer.
void find_near(const DoubleMatrix& scores, std::vector<HeadSelection>& heads) {
  for (std::size_t head = 0; head < heads.size(); ++head) {
    HeadSelection& selection = heads[head];
    const double tolerance = selection.tie_tolerance * selection.threshold;
    for (std::int64_t i = 0; i < scores.cols && selection.num_near > 0; ++i) {
      const double score = scores.row(static_cast<std::int64_t>(head))[i];
      if (std::abs(score - selection.threshold) <= tolerance) {
        selection.near.push_back(static_cast<std::int32_t>(i));
      }
    }
  }
}

}  // namespace

ReferencePrompt read_needle_prompt(const std::string& name) {
  const Json needle = read_json("needle.json");
  const Json& json = needle.at("prompts").at(name);
  const TensorFile tensors = open_tensors(json);
  ReferencePrompt prompt = read_prompt(needle.at("model").get<std::string>(), json, {}, tensors);
  prompt.greedy_ids = json.at("greedy").at("float64").at("ids").get<Ids>();
  if (json.contains("snapkv")) {
    for (const std::int64_t layer : prompt.layers) {
      prompt.scores.push_back(matrix(tensors, "snapkv_scores." + std::to_string(layer)));
    }
    read_selections(json, {128, 256, 512}, prompt);
    for (auto& [budget, layers] : prompt.selections) {
      for (std::size_t layer = 0; layer < layers.size(); ++layer) {
        find_near(prompt.scores.at(layer), layers[layer]);
      }
    }
    const Json& compact = json.at("compact_greedy");
    prompt.compact_greedy_ids[compact.at("budget").get<std::int64_t>()] =
        compact.at("float64").at("ids").get<Ids>();
  }
  return prompt;
}

ReferencePrompt read_smollm2_prompt(const std::string& name) {
  const Json smollm2 = read_json("smollm2.json");
  const Json& json = smollm2.at("prompts").at(name);
  ReferencePrompt prompt = read_prompt(smollm2.at("model").get<std::string>(), json,
                                       smollm2.at("layers"), open_tensors(json));
  prompt.logit_ids = smollm2.at("logit_ids").get<Ids>();
  prompt.greedy_ids = json.at("greedy").at("float64").at("ids").get<Ids>();
  if (json.contains("snapkv")) {
    read_selections(json, {256, 1024}, prompt);
    for (const int budget : {256, 1024}) {
      const std::string field = "budget_" + std::to_string(budget);
      prompt.compact_greedy_ids[budget] =
          json.at("compact_greedy").at(field).at("float64").at("ids").get<Ids>();
    }
  }
  return prompt;
}

ReferencePrompt read_toy_prompt(const std::string& name) {
  const Json toys = read_json("toys.json");
  const Json& json = toys.at("models").at(name);
  return read_prompt(json.at("model").get<std::string>(), json, {}, open_tensors(json));
}

}  // namespace tidekv::testing
