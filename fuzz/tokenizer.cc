// Any bytes as tokenizer.json, and what follows a zero byte as text: an error that names the file,
// or a tokenizer that can be used.
#include "text/tokenizer.h"

#include "base/check.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  const std::size_t zero = input.find('\0');
  const std::string json = input.substr(0, zero);
  const std::string text =
      zero == std::string::npos ? " ab aa\n12 \xC3\xA9\xFF<s>" : input.substr(zero + 1);
  const auto tokenizer = tidekv::parse_tokenizer_json(json, "tokenizer.json");
  if (!tokenizer.ok()) {
    TIDEKV_CHECK(tokenizer.error().message.find("tokenizer.json") != std::string::npos);
    return 0;
  }
  const auto ids = tokenizer.value()->encode(text, {.parse_special = true});
  if (ids.ok()) {  // an error is fine: a pattern may give up on a text
    tidekv::Detokenizer detokenizer(*tokenizer.value());
    for (const std::int32_t id : ids.value()) {
      TIDEKV_CHECK(id >= 0 && id < tokenizer.value()->vocab_size());
      detokenizer.next(id);
    }
    detokenizer.finish();
  }
  return 0;
}
