// needle_prompt: writes one prompt for models/needle to stdout, always the same for one seed, or
// many with their answers as `tidekv sweep` reads them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "needle_task.h"
#include "tidekv/engine.h"

namespace {

using tidekv::ErrorCode;
using tidekv::Status;

struct Options {
  std::string task = "single";
  std::int64_t tokens = 8192;
  std::uint64_t seed = 1;
  std::string words = "models/needle";
  std::string answer_file;
  bool json_lines = false;
  std::int64_t count = 1;
};

Status write_text(std::FILE* file, const std::string& text, const std::string& name) {
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() ||
      std::fflush(file) != 0) {
    return tidekv::Error{ErrorCode::kInvalidArgument, name + ": cannot write"};
  }
  return tidekv::Ok{};
}

std::string json_line(const tidekv::needle::Prompt& prompt, std::uint64_t seed) {
  const nlohmann::ordered_json line = {
      {"id", seed}, {"prompt", prompt.text}, {"answer", prompt.answer}};
  return line.dump() + "\n";
}

Status write_answer(const Options& options, const std::string& answer) {
  std::FILE* file = std::fopen(options.answer_file.c_str(), "wb");
  const Status written = write_text(file, answer, options.answer_file);
  if (file != nullptr) {
    std::fclose(file);
  }
  return written;
}

Status run(const Options& options) {
  TIDEKV_ASSIGN(const tidekv::needle::Task task, tidekv::needle::task_named(options.task));
  TIDEKV_ASSIGN(const tidekv::needle::Words words, tidekv::needle::read_words(options.words));
  TIDEKV_ASSIGN(const tidekv::Engine engine,
                tidekv::Engine::load(options.words, {.num_threads = 1}));
  const auto count_tokens = [&](std::string_view text) {
    const auto ids = engine.tokenize(text, {.add_bos = false});
    return ids.ok() ? static_cast<std::int64_t>(ids.value().size()) : 0;
  };
  const auto count = static_cast<std::uint64_t>(options.count);
  for (std::uint64_t seed = options.seed; seed - options.seed < count; ++seed) {
    TIDEKV_ASSIGN(const tidekv::needle::Prompt prompt,
                  tidekv::needle::make_prompt(task, options.tokens, seed, words, count_tokens));
    if (!options.answer_file.empty()) {
      TIDEKV_TRY(write_answer(options, prompt.answer));
    }
    TIDEKV_TRY(
        write_text(stdout, options.json_lines ? json_line(prompt, seed) : prompt.text, "stdout"));
  }
  return tidekv::Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes prompts for models/needle to stdout, always the same for one seed.");
  app.add_option("--task", options.task, "single, multikey or needles")->capture_default_str();
  app.add_option("--tokens", options.tokens, "length, BOS included, at most")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 24));
  app.add_option("--seed", options.seed, "another seed, another prompt")->capture_default_str();
  app.add_option("--words", options.words, "folder of the model and its word lists")
      ->capture_default_str();
  CLI::Option* answer_file =
      app.add_option("--answer-file", options.answer_file, "also write the right answer here");
  CLI::Option* json_lines =
      app.add_flag("--jsonl", options.json_lines, "a line for tidekv sweep, with the answer");
  json_lines->excludes(answer_file);
  app.add_option("-n", options.count, "prompts, of seeds seed .. seed + n - 1")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000))
      ->needs(json_lines);
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "needle_prompt: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
