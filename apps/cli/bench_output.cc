#include "bench_output.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "list_flags.h"
#include "text_layout.h"

namespace tidekv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;

// "model name : ..." of the first CPU; empty where the system does not tell.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

// Of activations and cache; auto is what the weights make it.
const char* compute_type(const BenchResult& result) {
  const ComputeType type = result.benchmarked.prefill.compute_type;
  const bool is_auto = type == ComputeType::kAuto;
  return type == ComputeType::kF32 || (is_auto && result.model.weights_type == "f32") ? "f32"
                                                                                      : "bf16";
}

bool keeps_everything(const BenchResult& result) {
  return tidekv::keeps_everything(result.benchmarked.prefill.method);
}

std::string model_type(const ModelInfo& model) {
  return fmt::format("{} {}", model.architecture, model.weights_type);
}

// What describes the case; llama-bench's names, also those that have one value only here.
Json setting_json(const BenchResult& result) {
  const BenchCase& benchmarked = result.benchmarked;
  const PlanReport& plan = result.last.plan;
  const char* dtype = compute_type(result);
  return {{"build_commit", version()},
          {"build_number", 0},
          {"cpu_info", cpu_name()},
          {"gpu_info", ""},
          {"backends", result.model.backend},
          {"model_filename", result.model.path},
          {"model_type", model_type(result.model)},
          {"model_size", result.model.weights_bytes},
          {"model_n_params", result.model.num_parameters},
          {"n_batch", plan.chunk_len},
          {"n_ubatch", plan.chunk_len},
          {"n_threads", result.num_threads},
          {"type_k", dtype},
          {"type_v", dtype},
          {"n_gpu_layers", 0},
          {"split_mode", "none"},
          {"main_gpu", 0},
          {"no_kv_offload", false},
          {"flash_attn", true},
          {"devices", ""},
          {"tensor_split", ""},
          {"use_mmap", true},
          {"embeddings", false},
          {"method", benchmarked.prefill.method},
          {"budget", keeps_everything(result) ? 0 : benchmarked.prefill.budget},
          {"n_prompt", benchmarked.num_prompt},
          {"n_gen", benchmarked.num_generated},
          {"n_depth", benchmarked.depth},
          {"test_time", result.test_time}};
}

void add_measurements(const BenchResult& result, Json& json) {
  const std::vector<double> ns(result.samples_ns.begin(), result.samples_ns.end());
  const MeanAndDeviation time = mean_and_deviation(ns);
  const MeanAndDeviation rate = mean_and_deviation(result.samples_ts());
  json["avg_ns"] = std::llround(time.mean);
  json["stddev_ns"] = std::llround(time.deviation);
  json["avg_ts"] = rate.mean;
  json["stddev_ts"] = rate.deviation;
  json["peak_bytes"] = result.last.memory.peak_bytes;
  json["final_cache_bytes"] = result.last.memory.final_cache_bytes;
  json["transient_bytes"] = result.last.memory.transient_bytes;
  json["process_peak_bytes"] = result.process_peak_bytes;
}

Json record(const BenchResult& result) {
  Json json = setting_json(result);
  add_measurements(result, json);
  return json;
}

Json record_with_samples(const BenchResult& result) {
  Json json = record(result);
  json["samples_ns"] = result.samples_ns;
  json["samples_ts"] = result.samples_ts();
  return json;
}

// A path need not be UTF-8; JSON must.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

class JsonOutput final : public BenchOutput {
 public:
  std::string head() override { return "[\n"; }
  std::string row(const BenchResult& result) override {
    const std::string before = empty_ ? "" : ",\n";
    empty_ = false;
    return before + dump(record_with_samples(result), 2);
  }
  std::string foot() override { return empty_ ? "]\n" : "\n]\n"; }

 private:
  bool empty_ = true;
};

class JsonLinesOutput final : public BenchOutput {
 public:
  std::string row(const BenchResult& result) override {
    return dump(record_with_samples(result), -1) + "\n";
  }
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + "\"";
}

class CsvOutput final : public BenchOutput {
 public:
  std::string head() override {
    std::vector<std::string> names;
    const Json json = record(BenchResult{});
    for (const auto& [key, value] : json.items()) {
      names.push_back(key);
    }
    return fmt::format("{}\n", fmt::join(names, ","));
  }
  std::string row(const BenchResult& result) override {
    std::vector<std::string> cells;
    const Json json = record(result);
    for (const auto& [key, value] : json.items()) {
      cells.push_back(quoted(value.is_string() ? value.get<std::string>() : dump(value, -1)));
    }
    return fmt::format("{}\n", fmt::join(cells, ","));
  }
};

struct Column {
  const char* title;
  int width;
  bool number;  // stands to the right
};

class MarkdownOutput final : public BenchOutput {
 public:
  explicit MarkdownOutput(const BenchVariation& varied) : varied_(varied) {
    columns_ = {{"model", 20, false},   {"size", 10, true},   {"params", 9, true},
                {"backend", 12, false}, {"threads", 7, true}, {"method", 11, false}};
    add_if(varied.budget, {"budget", 7, true});
    add_if(varied.chunk, {"chunk", 6, true});
    add_if(varied.dtype, {"type", 5, false});
    columns_.insert(
        columns_.end(),
        {{"test", 16, true}, {"t/s", 18, true}, {"peak", 12, true}, {"process peak", 12, true}});
  }

  std::string head() override {
    std::string names;
    std::string rule;
    for (const Column& column : columns_) {
      names += column.number ? fmt::format("| {:>{}} ", column.title, column.width)
                             : fmt::format("| {:<{}} ", column.title, column.width);
      rule += fmt::format("| {:-<{}}{} ", "", column.width - 1, column.number ? ":" : "-");
    }
    return names + "|\n" + rule + "|\n";
  }

  std::string row(const BenchResult& result) override {
    const std::vector<std::string> cells = cells_of(result);
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Column& column = columns_[i];
      text += column.number ? fmt::format("| {:>{}} ", cells[i], column.width)
                            : fmt::format("| {:<{}} ", cells[i], column.width);
    }
    return text + "|\n";
  }

 private:
  void add_if(bool wanted, const Column& column) {
    if (wanted) {
      columns_.push_back(column);
    }
  }

  std::vector<std::string> cells_of(const BenchResult& result) const {
    const ModelInfo& model = result.model;
    const PrefillOptions& prefill = result.benchmarked.prefill;
    const MeanAndDeviation rate = mean_and_deviation(result.samples_ts());
    std::vector<std::string> cells = {
        printable(model_type(model)),
        fmt::format("{:.2f} GiB", static_cast<double>(model.weights_bytes) / kGiB),
        fmt::format("{:.2f} B", static_cast<double>(model.num_parameters) / 1e9),
        model.backend,
        std::to_string(result.num_threads),
        prefill.method};
    if (varied_.budget) {
      cells.push_back(keeps_everything(result) ? "-" : std::to_string(prefill.budget));
    }
    if (varied_.chunk) {
      cells.push_back(std::to_string(result.last.plan.chunk_len));
    }
    if (varied_.dtype) {
      cells.emplace_back(compute_type(result));
    }
    cells.push_back(result.benchmarked.name());
    cells.push_back(fmt::format("{:.2f} ± {:.2f}", rate.mean, rate.deviation));
    for (const std::int64_t bytes : {result.last.memory.peak_bytes, result.process_peak_bytes}) {
      cells.push_back(fmt::format("{:.2f} MiB", static_cast<double>(bytes) / kMiB));
    }
    return cells;
  }

  BenchVariation varied_;
  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<BenchOutput> make_bench_output(BenchFormat format, const BenchVariation& varied) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return std::make_unique<MarkdownOutput>(varied);
    case BenchFormat::kCsv:
      return std::make_unique<CsvOutput>();
    case BenchFormat::kJson:
      return std::make_unique<JsonOutput>();
    case BenchFormat::kJsonLines:
      return std::make_unique<JsonLinesOutput>();
    case BenchFormat::kNone:
      break;
  }
  return nullptr;
}

}  // namespace tidekv::cli
