// Any bytes as a safetensors file: an error that names the file, or tensors inside the bytes.
#include "io/safetensors.h"

#include "base/check.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto contents = tidekv::parse_safetensors(bytes, "f.safetensors");
  if (!contents.ok()) {
    TIDEKV_CHECK(contents.error().message.starts_with("f.safetensors: "));
    return 0;
  }
  for (const auto& [name, tensor] : contents.value().tensors) {
    TIDEKV_CHECK(tensor.data >= bytes.data());
    TIDEKV_CHECK(tensor.data + tensor.num_bytes <= bytes.data() + bytes.size());
    TIDEKV_CHECK_OP((tensor.data - bytes.data()) % tidekv::size_of(tensor.dtype) * tensor.num_bytes,
                    ==, 0);
  }
  return 0;
}
