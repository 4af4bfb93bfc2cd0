#include "io/gguf_metadata.h"

#include "base/check.h"
#include "io/byte_reader.h"

namespace tidekv {
namespace {

constexpr std::uint64_t kMaxElements = 1
                                       << 24;  // of an array that is copied; vocabularies are less

// The array of that name, if it is one of `type`; any integer type where `type` is kInt64.
Result<const GgufArray*> find_array(const GgufMetadata& metadata, std::string_view key,
                                    GgufType type, std::string_view expected) {
  const GgufArray* array = metadata.array(key);
  if (array == nullptr) {
    return metadata.reader().error(ErrorCode::kBadFile, key, expected);
  }
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::kBadFile, metadata.file + ": field " + in_quotes(key) +
                                          " is an array of " + what + "; expected " +
                                          std::string(expected)};
  };
  if (array->type != type && !(type == GgufType::kInt64 && is_integer(array->type))) {
    return bad(std::string(name_of(array->type)));
  }
  if (array->count > kMaxElements) {
    return bad(std::to_string(array->count) + " elements");
  }
  return array;
}

}  // namespace

void for_each_string(const GgufArray& strings, const std::function<void(std::string_view)>& each) {
  TIDEKV_CHECK(strings.type == GgufType::kString);
  ByteReader bytes(strings.bytes);
  while (const auto text = bytes.string()) {
    each(*text);
  }
}

const GgufArray* GgufMetadata::array(std::string_view key) const {
  const auto it = arrays.find(key);
  return it == arrays.end() ? nullptr : &it->second;
}

Result<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  TIDEKV_ASSIGN(const GgufArray* found,
                find_array(*this, key, GgufType::kString, "an array of strings, 2^24 at most"));
  std::vector<std::string_view> out;
  out.reserve(static_cast<std::size_t>(found->count));
  for_each_string(*found, [&](std::string_view text) { out.push_back(text); });
  return out;
}

Result<std::vector<float>> GgufMetadata::floats(std::string_view key) const {
  TIDEKV_ASSIGN(const GgufArray* found, find_array(*this, key, GgufType::kFloat32,
                                                   "an array of float32 numbers, 2^24 at most"));
  std::vector<float> out(static_cast<std::size_t>(found->count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = load_little_endian<float>(found->bytes.data() + i * sizeof(float));
  }
  return out;
}

Result<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of integers below 2^63, 2^24 at most";
  TIDEKV_ASSIGN(const GgufArray* found, find_array(*this, key, GgufType::kInt64, kExpected));
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(found->count));
  for (std::size_t i = 0; i < found->count; ++i) {
    const JsonValue element =
        number_of(found->type, found->bytes.data() + i * traits_of(found->type).num_bytes);
    const auto* integer = std::get_if<std::int64_t>(&element.data);
    if (integer == nullptr) {
      return reader().error_in(ErrorCode::kBadFile, key, element, kExpected);
    }
    out.push_back(*integer);
  }
  return out;
}

}  // namespace tidekv
