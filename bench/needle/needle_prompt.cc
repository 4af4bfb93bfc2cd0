// needle_prompt: writes one prompt for models/needle to stdout, always the same for one seed.
#include <CLI/CLI.hpp>
#include <cstdio>
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
};

Status write_text(std::FILE* file, const std::string& text, const std::string& name) {
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() ||
      std::fflush(file) != 0) {
    return tidekv::Error{ErrorCode::kInvalidArgument, name + ": cannot write"};
  }
  return tidekv::Ok{};
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
  TIDEKV_ASSIGN(
      const tidekv::needle::Prompt prompt,
      tidekv::needle::make_prompt(task, options.tokens, options.seed, words, count_tokens));
  if (!options.answer_file.empty()) {
    std::FILE* file = std::fopen(options.answer_file.c_str(), "wb");
    const Status written = write_text(file, prompt.answer, options.answer_file);
    if (file != nullptr) {
      std::fclose(file);
    }
    TIDEKV_TRY(written);
  }
  return write_text(stdout, prompt.text, "stdout");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes one prompt for models/needle to stdout, always the same for one seed.");
  app.add_option("--task", options.task, "single, multikey or needles")->capture_default_str();
  app.add_option("--tokens", options.tokens, "length, BOS included, at most")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 24));
  app.add_option("--seed", options.seed, "another seed, another prompt")->capture_default_str();
  app.add_option("--words", options.words, "folder of the model and its word lists")
      ->capture_default_str();
  app.add_option("--answer-file", options.answer_file, "also write the right answer here");
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "needle_prompt: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
