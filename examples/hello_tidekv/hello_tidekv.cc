// Hides one fact in a long text, keeps 64 tokens of it per layer, and asks for the fact.
//
// Usage: hello_tidekv MODEL_FOLDER
#include <iostream>
#include <string>

#include "tidekv/engine.h"

namespace {

std::string long_prompt() {
  const std::string filler =
      " Rain fell on the quiet hills. The river kept its slow pace."
      " A lamp burned in the window. Nothing else happened that day.";
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += filler;
    if (i == 13) {
      text += " The secret number of hazel-clover is 4027719.";
    }
  }
  return text +
         "\nQuestion: What is the secret number of hazel-clover?"
         "\nAnswer: The secret number of hazel-clover is";
}

tidekv::Result<tidekv::RunReport> answer(const std::string& folder) {
  TIDEKV_ASSIGN(const tidekv::Engine engine, tidekv::Engine::load(folder, {}));
  tidekv::Request request;
  TIDEKV_ASSIGN(request.prompt, engine.tokenize(long_prompt(), {}));
  request.prefill.budget = 64;  // tokens kept per layer; the prompt has over a thousand
  request.prefill.max_new_tokens = 12;
  request.sampling.temperature = 0;
  return engine.generate(request, {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hello_tidekv MODEL_FOLDER\n";
    return 2;
  }
  const auto report = answer(argv[1]);
  if (!report.ok()) {
    std::cerr << report.error().message << '\n';
    return 1;
  }
  const std::string& text = report.value().text;  // the model goes on after its full stop
  std::cout << "The secret number of hazel-clover is" << text.substr(0, text.find('\n')) << '\n';
  for (std::size_t layer = 0; layer < report.value().layers.size(); ++layer) {
    const auto& kept = report.value().layers[layer];
    std::cout << "layer " << layer << " kept " << kept.kept << " of " << kept.total << " tokens\n";
  }
  return 0;
}
