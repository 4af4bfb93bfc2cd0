#include "io/gguf_metadata_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace tidekv {
namespace {

constexpr std::size_t kMaxKeyBytes = 65535;            // the format's own limit
constexpr std::size_t kMaxStringBytes = 64 << 20;      // of a single string, which is copied
constexpr std::size_t kMinFieldBytes = 8 + 1 + 4 + 1;  // key length, key, type, value
constexpr std::uint64_t kMaxFields = 65536;
constexpr std::size_t kLengthBytes = 8;

// Reads the entries one by one.
class MetadataReader {
 public:
  MetadataReader(ByteReader& bytes, GgufMetadata& out) : bytes_(bytes), out_(out) {}

  Status read_field(std::uint64_t index, std::uint64_t num_fields) {
    place_ = "metadata field " + std::to_string(index + 1) + " of " + std::to_string(num_fields);
    TIDEKV_ASSIGN(const std::string_view key, read_string("its key", kMaxKeyBytes));
    if (key.empty()) {
      return bad("its key is empty; expected 1 to " + std::to_string(kMaxKeyBytes) + " bytes");
    }
    place_ = "metadata field " + in_quotes(key);
    if (!keys_.insert(key).second) {
      return bad("it appears twice; expected each key once");
    }
    TIDEKV_ASSIGN(const GgufType type, read_type());
    JsonValue value;
    if (type == GgufType::kArray) {
      TIDEKV_ASSIGN(const GgufArray array, read_array());
      out_.arrays.emplace(key, array);
      value = {JsonArray(1)};
    } else {
      TIDEKV_ASSIGN(value, read_value(type));
    }
    out_.fields.push_back({std::string(key), std::move(value)});
    return Ok{};
  }

 private:
  Error bad(const std::string& what) const {
    return Error{ErrorCode::kBadFile, out_.file + ": " + place_ + ": " + what};
  }
  Error cut_off(const std::string& what) const {
    return bad(what + ", but the file has " + std::to_string(bytes_.left()) +
               " bytes left at byte " + std::to_string(bytes_.position()) +
               "; expected a complete file");
  }

  Result<std::string_view> read_string(const std::string& what, std::size_t max_bytes) {
    ByteReader ahead = bytes_;
    const auto length = ahead.value<std::uint64_t>();
    if (!length) {
      return cut_off(what + " takes " + std::to_string(kLengthBytes) + " bytes and more");
    }
    if (*length > ahead.left()) {
      bytes_ = ahead;
      return cut_off(what + " has " + std::to_string(*length) + " bytes");
    }
    if (*length > max_bytes) {
      return bad(what + " has " + std::to_string(*length) + " bytes; expected at most " +
                 std::to_string(max_bytes));
    }
    return *bytes_.string();
  }

  Result<GgufType> read_type() {
    const auto type = bytes_.value<std::uint32_t>();
    if (!type) {
      return cut_off("its type takes 4 bytes");
    }
    if (*type >= kGgufTypes.size()) {
      return bad("its type is " + std::to_string(*type) + "; expected 0 to " +
                 std::to_string(kGgufTypes.size() - 1));
    }
    return static_cast<GgufType>(*type);
  }

  Result<JsonValue> read_value(GgufType type) {
    if (type == GgufType::kString) {
      TIDEKV_ASSIGN(const std::string_view text, read_string("its string", kMaxStringBytes));
      return JsonValue{std::string(text)};
    }
    const std::size_t num_bytes = traits_of(type).num_bytes;
    const auto at = bytes_.take(num_bytes);
    if (!at) {
      return cut_off("its value takes " + std::to_string(num_bytes) + " bytes");
    }
    if (type == GgufType::kBool) {
      TIDEKV_TRY(check_booleans(*at));
      return JsonValue{at->front() != std::byte{0}};
    }
    return number_of(type, at->data());
  }

  Status check_booleans(std::span<const std::byte> values) const {
    const auto wrong = std::ranges::find_if(values, [](std::byte b) { return b > std::byte{1}; });
    if (wrong == values.end()) {
      return Ok{};
    }
    return bad("a bool is " + std::to_string(std::to_integer<int>(*wrong)) + "; expected 0 or 1");
  }

  Result<GgufArray> read_array() {
    GgufArray array;
    TIDEKV_ASSIGN(array.type, read_type());
    if (array.type == GgufType::kArray) {
      return Error{ErrorCode::kUnsupported,
                   bad("it is an array of arrays; expected numbers, bools or strings").message};
    }
    const auto count = bytes_.value<std::uint64_t>();
    if (!count) {
      return cut_off("its element count takes 8 bytes");
    }
    array.count = *count;
    const bool strings = array.type == GgufType::kString;
    const std::size_t least = strings ? kLengthBytes : traits_of(array.type).num_bytes;
    if (array.count > bytes_.left() / least) {
      return cut_off("it has " + std::to_string(array.count) + " elements of type " +
                     std::string(name_of(array.type)));
    }
    if (strings) {
      TIDEKV_ASSIGN(array.bytes, walk_strings(array.count));
    } else {
      array.bytes = *bytes_.take(array.count * least);  // not more than is left: no overflow
    }
    if (array.type == GgufType::kBool) {
      TIDEKV_TRY(check_booleans(array.bytes));
    }
    return array;
  }

  Result<std::span<const std::byte>> walk_strings(std::uint64_t count) {
    ByteReader start = bytes_;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!bytes_.string()) {
        const auto length = bytes_.value<std::uint64_t>();
        return cut_off("its string " + std::to_string(i + 1) + " of " + std::to_string(count) +
                       (length ? " has " + std::to_string(*length) + " bytes" : " has no length"));
      }
    }
    return *start.take(bytes_.position() - start.position());
  }

  ByteReader& bytes_;
  GgufMetadata& out_;
  std::set<std::string_view> keys_;  // ordered: hostile names cannot make it slow
  std::string place_;                // what is being read, for errors
};

}  // namespace

Status read_gguf_metadata(ByteReader& bytes, std::uint64_t num_fields, GgufMetadata& metadata) {
  if (num_fields > std::min<std::uint64_t>(kMaxFields, bytes.left() / kMinFieldBytes)) {
    return Error{ErrorCode::kBadFile,
                 metadata.file + ": the header counts " + std::to_string(num_fields) +
                     " metadata fields; expected at most " + std::to_string(kMaxFields) +
                     ", and no more than the " + std::to_string(bytes.left()) +
                     " bytes after the header hold"};
  }
  MetadataReader reader(bytes, metadata);
  for (std::uint64_t i = 0; i < num_fields; ++i) {
    TIDEKV_TRY(reader.read_field(i, num_fields));
  }
  return Ok{};
}

}  // namespace tidekv
