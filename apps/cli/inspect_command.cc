// tidekv inspect: what a model folder holds.
#include "inspect_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exit_codes.h"
#include "output.h"
#include "request_flags.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string token_name(const Engine& engine, std::int32_t id) {
  return id < 0 ? "none" : fmt::format("{} '{}'", id, printable(engine.token_text(id)));
}

std::string eos_names(const Engine& engine) {
  std::string names;
  for (const std::int32_t id : engine.model().eos_token_ids) {
    names += (names.empty() ? "" : ", ") + token_name(engine, id);
  }
  return names.empty() ? "none" : names;
}

std::string tensor_table(const Engine& engine) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "type", "shape", "bytes"}};
  for (const TensorListing& tensor : engine.tensors()) {
    rows.push_back({printable(tensor.name), printable(tensor.dtype),
                    fmt::format("[{}]", fmt::join(tensor.shape, ", ")), grouped(tensor.num_bytes)});
  }
  return table(rows);
}

std::string inspect_text(const Engine& engine) {
  const ModelInfo& model = engine.model();
  std::string text;
  const auto line = [&text](const char* label, const std::string& value) {
    text += fmt::format("{:<16}{}\n", label, value);
  };
  line("model", printable(model.path));
  line("architecture", printable(model.architecture));
  line("parameters", grouped(model.num_parameters));
  line("weights", fmt::format("{}, {}", model.weights_type, bytes_and_units(model.weights_bytes)));
  line("layers", grouped(model.num_layers));
  line("hidden", grouped(model.hidden_dim));
  line("feed-forward", grouped(model.ffn_dim));
  line("heads", fmt::format("{} query, {} KV, of {}", model.num_q_heads, model.num_kv_heads,
                            model.head_dim));
  line("context", grouped(model.max_positions) + " tokens");
  line("RoPE", fmt::format("theta {}, {}", model.rope_theta, printable(model.rope_type)));
  line("embeddings", model.tied_embeddings ? "tied" : "not tied");
  line("vocabulary", grouped(model.vocab_size));
  line("begin of text", token_name(engine, model.bos_token_id));
  line("end of text", eos_names(engine));
  line("kernels", model.backend);
  return text + "\n" + tensor_table(engine);
}

std::string inspect_json(const Engine& engine) {
  const ModelInfo& model = engine.model();
  Json json = {{"schema_version", 1},
               {"path", model.path},
               {"architecture", model.architecture},
               {"weights_type", model.weights_type},
               {"num_parameters", model.num_parameters},
               {"weights_bytes", model.weights_bytes},
               {"num_layers", model.num_layers},
               {"hidden_dim", model.hidden_dim},
               {"ffn_dim", model.ffn_dim},
               {"num_q_heads", model.num_q_heads},
               {"num_kv_heads", model.num_kv_heads},
               {"head_dim", model.head_dim},
               {"vocab_size", model.vocab_size},
               {"max_positions", model.max_positions},
               {"rope_theta", model.rope_theta},
               {"rope_type", model.rope_type},
               {"tied_embeddings", model.tied_embeddings},
               {"bos_token_id", model.bos_token_id},
               {"eos_token_ids", model.eos_token_ids},
               {"backend", model.backend},
               {"tensors", Json::array()}};
  for (const TensorListing& tensor : engine.tensors()) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"dtype", tensor.dtype},
                               {"shape", tensor.shape},
                               {"num_bytes", tensor.num_bytes}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

class InspectCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override {
    CLI::App* app = program.add_subcommand("inspect", "what a model folder holds");
    Flags flags(*app);
    add_model_flags(flags, model_);
    flags.choice<ReportFormat>({"--report", "text|json", "form of the listing"}, format_,
                               {{"text", ReportFormat::kText}, {"json", ReportFormat::kJson}});
    return app;
  }

  Result<int> execute() override {
    TIDEKV_ASSIGN(const Engine engine, load_engine(model_));
    StdoutText output;
    output.write(format_ == ReportFormat::kJson ? inspect_json(engine) : inspect_text(engine));
    return output.finish(kExitOk);
  }

 private:
  ModelFlags model_;
  ReportFormat format_ = ReportFormat::kText;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace tidekv::cli
