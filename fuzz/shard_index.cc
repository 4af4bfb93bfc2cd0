// Any bytes as a sharded index: an error that names the file, or plain file names.
#include "io/shard_index.h"

#include "base/check.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string json(data, data + size);
  const auto index = tidekv::parse_shard_index(json, "f.index.json");
  if (!index.ok()) {
    TIDEKV_CHECK(index.error().message.starts_with("f.index.json: "));
    return 0;
  }
  TIDEKV_CHECK(!index.value().empty());
  for (const auto& [name, shard] : index.value()) {
    TIDEKV_CHECK(shard.find_first_of("/\\") == std::string::npos && !shard.starts_with('.'));
  }
  return 0;
}
