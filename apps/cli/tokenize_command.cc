// tidekv tokenize: the ids a prompt becomes.
#include "tokenize_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exit_codes.h"
#include "output.h"
#include "prompt.h"
#include "request_flags.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

using Json = nlohmann::ordered_json;

// The text a token stands for. Special tokens stand for none, and some tokens for a part of a
// character: these show the vocabulary's spelling.
std::string piece_of(const Engine& engine, std::int32_t id) {
  constexpr const char* kReplacement = "\xEF\xBF\xBD";
  std::string piece = engine.detokenize({id});
  const bool whole = !piece.empty() && piece.find(kReplacement) == std::string::npos;
  return whole ? piece : engine.token_text(id);
}

std::string listing(const Engine& engine, const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) {
    text += fmt::format("{:>6} -> '{}'\n", id, printable(piece_of(engine, id)));
  }
  return text;
}

std::string json_listing(const Engine& engine, const std::vector<std::int32_t>& ids) {
  Json json = Json::array();
  for (const std::int32_t id : ids) {
    json.push_back({{"id", id}, {"piece", piece_of(engine, id)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

class TokenizeCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override {
    CLI::App* app = program.add_subcommand("tokenize", "the ids a prompt becomes");
    Flags flags(*app);
    flags.group("Model");
    add_model_flags(flags, model_);
    add_prompt_flags(flags, prompt_);
    flags.group("Output");
    flags.on_off("--ids", ids_only_, "the ids alone, on one line: [1, 2, 3]");
    flags.on_off("--json", json_, "an array of {\"id\", \"piece\"}");
    return app;
  }

  Result<int> execute() override {
    if (ids_only_ && json_) {
      return Error{ErrorCode::kInvalidArgument, "give either --ids or --json"};
    }
    TIDEKV_TRY(check_model_flags(model_));
    TIDEKV_TRY(check_prompt_flags(prompt_));
    TIDEKV_ASSIGN(const Engine engine, load_engine(model_));
    TIDEKV_ASSIGN(const std::string text, read_prompt(prompt_, limit_of_listing()));
    TIDEKV_ASSIGN(const auto ids, tokenize_prompt(engine, prompt_, text));
    StdoutText output;
    output.write(ids_only_ ? fmt::format("[{}]\n", fmt::join(ids, ", "))
                 : json_   ? json_listing(engine, ids)
                           : listing(engine, ids));
    print_message(fmt::format("{} tokens\n", grouped(static_cast<std::int64_t>(ids.size()))));
    return output.finish(kExitOk);
  }

 private:
  ModelFlags model_;
  PromptFlags prompt_;
  bool ids_only_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenize_command() { return std::make_unique<TokenizeCommand>(); }

}  // namespace tidekv::cli
