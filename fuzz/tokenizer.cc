// Any bytes as tokenizer.json: an error that names the file, or a tokenizer that can be used.
#include "text/tokenizer.h"

#include <cstddef>

#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string json(data, data + size);
  const auto tokenizer = tidekv::parse_tokenizer_json(json, "tokenizer.json");
  if (!tokenizer.ok()) {
    TIDEKV_CHECK(tokenizer.error().message.find("tokenizer.json") != std::string::npos);
    return 0;
  }
  const auto ids = tokenizer.value()->encode(" ab aa\n12 \xC3\xA9\xFF<s>", {.parse_special = true});
  if (ids.ok()) {  // an error is fine: a vocabulary need not have every byte
    for (const std::int32_t id : ids.value()) {
      TIDEKV_CHECK(id >= 0 && id < tokenizer.value()->vocab_size());
    }
  }
  return 0;
}
