// tidekv inspect: what a model's files hold.
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
#include "tidekv/model_listing.h"

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

// What the program makes of the model, or why it cannot run it.
std::string model_text(const Result<Engine>& engine) {
  if (!engine.ok()) {
    return fmt::format("{:<16}no: {}\n", "runs", printable(engine.error().message));
  }
  const ModelInfo& model = engine.value().model();
  std::string text;
  const auto line = [&text](const char* label, const std::string& value) {
    text += fmt::format("{:<16}{}\n", label, value);
  };
  line("runs", fmt::format("yes, with kernels {}", model.backend));
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
  line("begin of text", token_name(engine.value(), model.bos_token_id));
  line("end of text", eos_names(engine.value()));
  return text;
}

std::string field_table(const std::vector<FieldListing>& fields) {
  std::string text;
  for (const FieldListing& field : fields) {
    text += fmt::format("{} ({}) = {}\n", printable(field.key), field.type, printable(field.value));
  }
  return text.empty() ? text : text + "\n";
}

std::string tensor_table(const std::vector<TensorListing>& tensors) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "type", "shape", "bytes"}};
  for (const TensorListing& tensor : tensors) {
    rows.push_back({printable(tensor.name), printable(tensor.dtype),
                    fmt::format("[{}]", fmt::join(tensor.shape, ", ")), grouped(tensor.num_bytes)});
  }
  return table(rows);
}

std::string inspect_text(const ModelListing& listing, const Result<Engine>& engine) {
  return fmt::format("{:<16}{}\n{:<16}{}, {} tensors{}\n", "model", printable(listing.path),
                     "files", listing.format,
                     grouped(static_cast<std::int64_t>(listing.tensors.size())),
                     listing.damage ? " that can be read" : "") +
         model_text(engine) + "\n" + field_table(listing.fields) + tensor_table(listing.tensors);
}

void add_model(const ModelInfo& model, Json& json) {
  json["architecture"] = model.architecture;
  json["weights_type"] = model.weights_type;
  json["num_parameters"] = model.num_parameters;
  json["weights_bytes"] = model.weights_bytes;
  json["num_layers"] = model.num_layers;
  json["hidden_dim"] = model.hidden_dim;
  json["ffn_dim"] = model.ffn_dim;
  json["num_q_heads"] = model.num_q_heads;
  json["num_kv_heads"] = model.num_kv_heads;
  json["head_dim"] = model.head_dim;
  json["vocab_size"] = model.vocab_size;
  json["max_positions"] = model.max_positions;
  json["rope_theta"] = model.rope_theta;
  json["rope_type"] = model.rope_type;
  json["tied_embeddings"] = model.tied_embeddings;
  json["bos_token_id"] = model.bos_token_id;
  json["eos_token_ids"] = model.eos_token_ids;
  json["backend"] = model.backend;
}

std::string inspect_json(const ModelListing& listing, const Result<Engine>& engine) {
  Json json = {{"schema_version", 1},
               {"path", listing.path},
               {"format", listing.format},
               {"runs", engine.ok()}};
  if (engine.ok()) {
    add_model(engine.value().model(), json);
  } else {
    json["error"] = engine.error().message;
  }
  json["fields"] = Json::array();
  for (const FieldListing& field : listing.fields) {
    json["fields"].push_back({{"key", field.key}, {"type", field.type}, {"value", field.value}});
  }
  json["tensors"] = Json::array();
  for (const TensorListing& tensor : listing.tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"dtype", tensor.dtype},
                               {"shape", tensor.shape},
                               {"num_bytes", tensor.num_bytes}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A model that cannot be run is listed all the same: that is what one inspects it for. Of a damaged
// one, what can be read; then it fails as every command does.
class InspectCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override {
    CLI::App* app = program.add_subcommand("inspect", "what a model's files hold");
    Flags flags(*app);
    add_model_flags(flags, model_);
    flags.choice<ReportFormat>({"--report", "text|json", "form of the listing"}, format_,
                               {{"text", ReportFormat::kText}, {"json", ReportFormat::kJson}});
    return app;
  }

  Result<int> execute() override {
    TIDEKV_TRY(check_model_flags(model_));
    TIDEKV_ASSIGN(const ModelListing listing, list_model(*model_.path));
    const Result<Engine> engine =
        listing.damage ? Result<Engine>(*listing.damage) : load_engine(model_);
    if (!engine.ok() && engine.error().code == ErrorCode::kInvalidArgument) {
      return engine.error();  // of a flag, not of the model
    }
    StdoutText output;
    output.write(format_ == ReportFormat::kJson ? inspect_json(listing, engine)
                                                : inspect_text(listing, engine));
    const int exit_code = output.finish(kExitOk);
    return listing.damage ? Result<int>(*listing.damage) : Result<int>(exit_code);
  }

 private:
  ModelFlags model_;
  ReportFormat format_ = ReportFormat::kText;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace tidekv::cli
