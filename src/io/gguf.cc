#include "io/gguf.h"

#include <bit>
#include <cstring>
#include <utility>

#include "io/byte_reader.h"
#include "io/file_signature.h"
#include "io/gguf_metadata_reader.h"
#include "io/gguf_tensor_reader.h"

namespace tidekv {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::size_t kHeaderBytes = 4 + 4 + 8 + 8;  // magic, version, two counts
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::int64_t kDefaultAlignment = 32;

Status check_version(std::uint32_t version, const std::string& file) {
  const std::uint32_t swapped = __builtin_bswap32(version);
  std::string what;
  if (version == 2 || version == 3) {
    return Ok{};
  }
  if (version == 1) {
    what = "a GGUF file of version 1, which is no longer in use";
  } else if (swapped >= 1 && swapped <= 3) {
    what = "a big-endian GGUF file";
  } else {
    what = "a GGUF file of version " + std::to_string(version);
  }
  return Error{ErrorCode::kUnsupported,
               file + ": " + what + "; expected a little-endian one of version 2 or 3"};
}

struct Header {
  std::uint32_t version = 0;
  std::uint64_t num_tensors = 0;
  std::uint64_t num_fields = 0;
};

Result<Header> read_header(ByteReader& bytes, std::span<const std::byte> whole,
                           const std::string& file) {
  if (!begins_like_gguf(whole)) {
    return Error{ErrorCode::kBadFile,
                 file + ": does not begin with 'GGUF'; expected a GGUF file" + looks_like(whole)};
  }
  if (whole.size() < kHeaderBytes) {
    return Error{ErrorCode::kBadFile, file + ": only " + std::to_string(whole.size()) +
                                          " bytes; expected a header of " +
                                          std::to_string(kHeaderBytes) + " bytes"};
  }
  static_cast<void>(bytes.take(kMagic.size()));
  Header header;
  header.version = *bytes.value<std::uint32_t>();
  TIDEKV_TRY(check_version(header.version, file));
  header.num_tensors = *bytes.value<std::uint64_t>();
  header.num_fields = *bytes.value<std::uint64_t>();
  return header;
}

Result<std::int64_t> alignment_of(const GgufMetadata& metadata) {
  const FieldReader fields = metadata.reader();
  const JsonValue* value = fields.find(kAlignmentKey);
  if (value == nullptr) {
    return kDefaultAlignment;
  }
  const auto* alignment = std::get_if<std::int64_t>(&value->data);
  if (alignment == nullptr || *alignment < 1 || *alignment > UINT32_MAX ||
      !std::has_single_bit(static_cast<std::uint64_t>(*alignment))) {
    return fields.error(ErrorCode::kBadFile, kAlignmentKey, "a power of two below 2^32");
  }
  return *alignment;
}

}  // namespace

bool begins_like_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Status parse_gguf_until_damage(std::span<const std::byte> bytes, const std::string& file,
                               GgufContents& contents) {
  ByteReader reader(bytes);
  TIDEKV_ASSIGN(const Header header, read_header(reader, bytes, file));
  contents.metadata.file = file;
  contents.metadata.version = header.version;
  TIDEKV_TRY(read_gguf_metadata(reader, header.num_fields, contents.metadata));
  TIDEKV_ASSIGN(const std::int64_t alignment, alignment_of(contents.metadata));
  GgufTensors tensors;
  Status status = read_gguf_tensors(reader, {header.num_tensors, alignment}, file, tensors);
  contents.tensors = std::move(tensors.usable);
  contents.other_dtypes = std::move(tensors.other_dtypes);
  return status;
}

Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& file) {
  GgufContents contents;
  TIDEKV_TRY(parse_gguf_until_damage(bytes, file, contents));
  return contents;
}

}  // namespace tidekv
