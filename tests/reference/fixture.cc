#include "reference/fixture.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

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

HeadSelection head_selection(const Json& json) {
  return {.retained = json.at("retained").get<std::vector<std::int32_t>>(),
          .threshold = json.at("threshold").get<double>(),
          .float32_error = json.at("float32_error").get<double>(),
          .tie_tolerance = json.at("tie_tolerance").get<double>(),
          .num_near = json.at("num_near").get<std::int64_t>()};
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

// What needle's prompts and the toys' have in common.
ReferencePrompt read_prompt(const std::string& model, const Json& json, const TensorFile& tensors) {
  ReferencePrompt prompt;
  prompt.model = model;
  prompt.gguf = json.value("gguf", "");
  prompt.prompt_ids = json.at("prompt_ids").get<std::vector<std::int32_t>>();
  prompt.answer_ids = json.at("answer_ids").get<std::vector<std::int32_t>>();
  prompt.rows = json.at("rows").get<std::vector<std::int64_t>>();
  prompt.errors = all_errors(json.at("errors"));
  prompt.logits = float64_matrix(tensors, "logits");
  const std::size_t num_layers = prompt.errors.at("float32_sdpa").hidden.size();
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    prompt.hidden.push_back(float64_matrix(tensors, "hidden." + std::to_string(layer)));
  }
  return prompt;
}

TensorFile open_tensors(const Json& json) {
  return value_or_exit(TensorFile::open(path_of(json.at("file").get<std::string>())));
}

void read_snapkv(const Json& json, const TensorFile& tensors, ReferencePrompt& prompt) {
  for (std::size_t layer = 0; layer < prompt.hidden.size(); ++layer) {
    prompt.scores.push_back(matrix(tensors, "snapkv_scores." + std::to_string(layer)));
  }
  for (const int budget : {128, 256, 512}) {
    const std::string field = "budget_" + std::to_string(budget);
    prompt.selections[budget] = layer_selections(json.at("snapkv").at(field));
  }
  const Json& compact = json.at("compact_greedy");
  prompt.compact_budget = compact.at("budget").get<std::int64_t>();
  prompt.compact_greedy_ids = compact.at("float64").at("ids").get<std::vector<std::int32_t>>();
}

}  // namespace

ReferencePrompt read_needle_prompt(const std::string& name) {
  const Json needle = read_json("needle.json");
  const Json& json = needle.at("prompts").at(name);
  const TensorFile tensors = open_tensors(json);
  ReferencePrompt prompt = read_prompt(needle.at("model").get<std::string>(), json, tensors);
  prompt.greedy_ids = json.at("greedy").at("float64").at("ids").get<std::vector<std::int32_t>>();
  if (json.contains("snapkv")) {
    read_snapkv(json, tensors, prompt);
  }
  return prompt;
}

ReferencePrompt read_toy_prompt(const std::string& name) {
  const Json toys = read_json("toys.json");
  const Json& json = toys.at("models").at(name);
  return read_prompt(json.at("model").get<std::string>(), json, open_tensors(json));
}

}  // namespace tidekv::testing
