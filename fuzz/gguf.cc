// Any bytes as a GGUF file: an error that names the file, or metadata and tensors inside the bytes;
// and of the metadata a tokenizer, or an error that names the file.
#include "io/gguf.h"

#include "base/check.h"
#include "engine/gguf_tokenizer.h"
#include "fuzz_target.h"

namespace {

void walk_metadata(const tidekv::GgufMetadata& metadata) {
  for (const auto& [key, array] : metadata.arrays) {
    const auto strings = metadata.strings(key);
    const auto floats = metadata.floats(key);
    const auto integers = metadata.integers(key);
    TIDEKV_CHECK(strings.ok() + floats.ok() + integers.ok() <= 1);
    if (strings.ok()) {
      std::size_t num_bytes = 0;
      for (const std::string_view text : strings.value()) {
        num_bytes += 8 + text.size();
      }
      TIDEKV_CHECK_OP(strings.value().size(), ==, array.count);
      TIDEKV_CHECK_OP(num_bytes, ==, array.bytes.size());
    }
  }
  for (const tidekv::JsonMember& field : metadata.fields) {
    const bool is_array = std::holds_alternative<tidekv::JsonArray>(field.value.data);
    TIDEKV_CHECK(is_array == (metadata.array(field.key) != nullptr));
    TIDEKV_CHECK(!tidekv::describe(field.value).empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto contents = tidekv::parse_gguf(bytes, "f.gguf");
  if (!contents.ok()) {
    TIDEKV_CHECK(contents.error().message.starts_with("f.gguf: "));
    return 0;
  }
  walk_metadata(contents.value().metadata);
  const auto tokenizer = tidekv::read_gguf_tokenizer(contents.value().metadata);
  if (tokenizer.ok()) {
    const auto ids = tokenizer.value()->encode("a text \n 12", {.add_bos = true});
    TIDEKV_CHECK(!ids.ok() || ids.value().size() <= 12 + 1);
  } else {
    TIDEKV_CHECK(tokenizer.error().message.starts_with("f.gguf: "));
  }
  std::int64_t total = 0;
  for (const auto& [name, tensor] : contents.value().tensors) {
    TIDEKV_CHECK(tensor.data >= bytes.data());
    TIDEKV_CHECK_OP(tensor.num_bytes, >, 0);
    TIDEKV_CHECK_OP(tensor.num_bytes, <=, bytes.data() + bytes.size() - tensor.data);
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
      rows *= tensor.shape[i];
    }
    TIDEKV_CHECK_OP(rows * tidekv::row_bytes(tensor.dtype, tensor.shape.back()), ==,
                    tensor.num_bytes);
    total += tensor.num_bytes;
  }
  TIDEKV_CHECK_OP(total, <=, bytes.size());  // no two overlap
  return 0;
}
