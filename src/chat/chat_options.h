// What a chat template may know besides the messages.
#pragma once

#include <ctime>
#include <optional>
#include <string>

namespace tidekv {

struct ChatOptions {
  // The special tokens as text. Empty: the model has none, and the template sees it undefined.
  std::string bos_token = {};
  std::string eos_token = {};
  std::string unk_token = {};
  std::string pad_token = {};
  // Ends with the words that open the assistant's answer.
  bool add_generation_prompt = true;
  // What strftime_now() prints; without it the template sees no such function and, as templates
  // for old versions do, uses the date it has.
  std::optional<std::tm> local_time = {};
};

}  // namespace tidekv
