#include "text/tokenizer.h"

#include "text/utf8.h"

namespace tidekv {

std::string Detokenizer::next(std::int32_t id) {
  pending_ += tokenizer_->token_bytes(id);
  std::string out;
  std::size_t done = 0;
  while (done < pending_.size()) {
    const std::string_view rest = std::string_view{pending_}.substr(done);
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Kind::kIncomplete) {
      break;
    }
    out += step.kind == Utf8Kind::kValid ? rest.substr(0, step.length) : kReplacementCharacter;
    done += step.length;
  }
  pending_.erase(0, done);
  return out;
}

std::string Detokenizer::finish() {
  std::string out(pending_.empty() ? std::string_view{} : kReplacementCharacter);
  pending_.clear();
  return out;
}

}  // namespace tidekv
