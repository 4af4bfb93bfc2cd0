// A conversation, as chat templates see it.
#pragma once

#include <string>

namespace tidekv {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

}  // namespace tidekv
