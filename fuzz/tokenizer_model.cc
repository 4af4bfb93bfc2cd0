// Any bytes as tokenizer.model, SentencePiece or tiktoken: an error that names the file, or a
// tokenizer that can be used.
#include <string>

#include "base/check.h"
#include "fuzz_target.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  const auto tokenizer = tidekv::parse_tokenizer_model(bytes, "tokenizer.model");
  if (!tokenizer.ok()) {
    TIDEKV_CHECK(tokenizer.error().message.find("tokenizer.model") != std::string::npos);
    return 0;
  }
  const std::string texts[] = {" ab  aab\n12 \xC3\xA9\xEF\xBC\xA1\xFF<s>\xE2\x96\x81",
                               bytes.substr(0, 256)};
  for (const std::string& text : texts) {
    const auto ids = tokenizer.value()->encode(text, {.parse_special = true});
    TIDEKV_CHECK(ids.ok());
    tidekv::Detokenizer detokenizer(*tokenizer.value());
    for (const std::int32_t id : ids.value()) {
      TIDEKV_CHECK(id >= 0 && id < tokenizer.value()->vocab_size());
      detokenizer.next(id);
    }
    detokenizer.finish();
  }
  return 0;
}
