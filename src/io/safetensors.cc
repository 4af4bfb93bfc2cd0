#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked_math.h"
#include "base/field_reader.h"
#include "base/json_value.h"
#include "io/file_signature.h"

namespace tidekv {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own cap
// More than any model holds in one file, and as many as in GGUF; bounds the time and memory that
// a header of its greatest length can take.
constexpr std::int64_t kMaxTensors = 1 << 16;
constexpr std::size_t kMaxDims = 16;
constexpr IntRange kNotNegative = {0, INT64_MAX};

struct ElementType {
  std::string_view spelling;
  std::int64_t bits;
  std::optional<DType> dtype;  // of those that can be used
};

constexpr ElementType kElementTypes[] = {
    {"BF16", 16, DType::kBF16},
    {"F16", 16, DType::kF16},
    {"F32", 32, DType::kF32},
    {"BOOL", 8, {}},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, {}},
    {"I8", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"I32", 32, {}},
    {"U32", 32, {}},
    {"C64", 64, {}},
    {"F64", 64, {}},
    {"I64", 64, {}},
    {"U64", 64, {}},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // bytes as text
}

struct Sections {
  std::string_view header;
  std::span<const std::byte> data;
  std::int64_t data_start = 0;  // byte of the file
};

Result<Sections> split(std::span<const std::byte> bytes, const std::string& file) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::kBadFile, file + ": " + what + looks_like(bytes)};
  };
  if (bytes.size() < kLengthBytes) {
    return bad("only " + std::to_string(bytes.size()) +
               " bytes; expected a header length of 8 bytes and a header");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  if (length > kMaxHeaderBytes) {
    return bad("header length is " + std::to_string(length) + " bytes; expected at most " +
               std::to_string(kMaxHeaderBytes));
  }
  const auto header_bytes = static_cast<std::size_t>(length);
  if (header_bytes > bytes.size() - kLengthBytes) {
    return bad("the header ends at byte " + std::to_string(header_bytes + kLengthBytes) +
               ", but the file has " + std::to_string(bytes.size()) +
               " bytes; expected a complete file");
  }
  const std::string_view header = as_text(bytes.subspan(kLengthBytes, header_bytes));
  const std::size_t first = header.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || header[first] != '{') {
    return bad("the header does not begin with '{'; expected a JSON object");
  }
  return Sections{header, bytes.subspan(kLengthBytes + header_bytes),
                  kLengthBytes + static_cast<std::int64_t>(header_bytes)};
}

// One tensor's place in the data section, whatever its type.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string name;
};

std::string spelled(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < std::min<std::size_t>(shape.size(), 8); ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return out + (shape.size() > 8 ? ", ...]" : "]");
}

std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& shape, std::int64_t bits) {
  std::optional<std::int64_t> total = bits;
  for (const std::int64_t dim : shape) {
    total = checked_mul(*total, dim);
    if (!total) {
      return std::nullopt;
    }
  }
  return *total % 8 == 0 ? std::optional(*total / 8) : std::nullopt;
}

// Reads the header's members one by one into `contents` and `ranges`.
class HeaderReader {
 public:
  HeaderReader(const Sections& sections, const std::string& file)
      : sections_(sections), file_(file) {}

  Status read_member(JsonMember member) {
    const bool metadata = member.key == "__metadata__";
    if (metadata && member.value.is_null()) {
      return Ok{};
    }
    const auto* object = std::get_if<JsonObject>(&member.value.data);
    if (object == nullptr) {
      return Error{ErrorCode::kBadFile, file_ + ": header field " + in_quotes(member.key) + " is " +
                                            describe(member.value) + "; expected an object"};
    }
    if (metadata) {
      return check_metadata(*object);
    }
    if (std::cmp_equal(ranges_.size(), kMaxTensors)) {
      return Error{ErrorCode::kBadFile, file_ + ": the header names more than " +
                                            std::to_string(kMaxTensors) +
                                            " tensors; expected at most that many in one file"};
    }
    return read_tensor(member.key, *object);
  }

  // Holes and overlaps show only when all tensors are known.
  Status check_tiling();

  SafetensorsContents take() { return std::move(contents_); }

 private:
  Status check_metadata(const JsonObject& object) {
    const FieldReader fields(object, file_, "__metadata__.");
    for (const JsonMember& entry : object) {
      if (!std::holds_alternative<std::string>(entry.value.data)) {
        return fields.error(ErrorCode::kBadFile, entry.key, "a string");
      }
    }
    return Ok{};
  }

  Status read_tensor(const std::string& name, const JsonObject& object);
  Result<Range> read_range(const std::string& name, const FieldReader& fields) const;
  Error bad_tensor(const std::string& name, const std::string& what) const {
    return Error{ErrorCode::kBadFile, file_ + ": tensor " + in_quotes(name) + ": " + what};
  }

  Sections sections_;
  const std::string& file_;
  SafetensorsContents contents_;
  std::vector<Range> ranges_;
};

Result<const ElementType*> read_element_type(const FieldReader& fields) {
  constexpr std::string_view kExpected = "BF16, F16, F32 or another type the format defines";
  TIDEKV_ASSIGN(const std::string spelling, fields.string("dtype", kExpected));
  const auto* type = std::ranges::find(kElementTypes, spelling, &ElementType::spelling);
  if (type == std::end(kElementTypes)) {
    return fields.error(ErrorCode::kUnsupported, "dtype", kExpected);
  }
  return type;
}

Result<Range> HeaderReader::read_range(const std::string& name, const FieldReader& fields) const {
  TIDEKV_ASSIGN(const std::vector<std::int64_t> offsets,
                fields.integers("data_offsets", kNotNegative));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return bad_tensor(
        name, "data_offsets are " + spelled(offsets) + "; expected [begin, end] with begin <= end");
  }
  const auto data_bytes = static_cast<std::int64_t>(sections_.data.size());
  if (offsets[1] > data_bytes) {
    return bad_tensor(name, "data_offsets end at byte " + std::to_string(offsets[1]) +
                                " of the data section, which has " + std::to_string(data_bytes) +
                                " bytes; expected a complete file");
  }
  return Range{offsets[0], offsets[1], name};
}

Status HeaderReader::read_tensor(const std::string& name, const JsonObject& object) {
  const FieldReader fields(object, file_ + ": tensor " + in_quotes(name));
  TIDEKV_ASSIGN(const ElementType* type, read_element_type(fields));
  TIDEKV_ASSIGN(std::vector<std::int64_t> shape, fields.integers("shape", kNotNegative));
  if (shape.size() > kMaxDims) {
    return bad_tensor(name, "shape has " + std::to_string(shape.size()) +
                                " dimensions; expected at most " + std::to_string(kMaxDims));
  }
  TIDEKV_ASSIGN(Range range, read_range(name, fields));

  const std::optional<std::int64_t> needed = bytes_of(shape, type->bits);
  if (!needed || *needed != range.end - range.begin) {
    return bad_tensor(name, "shape " + spelled(shape) + " of " + std::string(type->spelling) +
                                " takes " +
                                (needed ? std::to_string(*needed) : "no representable number of") +
                                " bytes, but data_offsets hold " +
                                std::to_string(range.end - range.begin) + "; expected the same");
  }
  if (!type->dtype) {
    contents_.other_dtypes.emplace(name, type->spelling);
  } else {
    const std::int64_t file_offset = sections_.data_start + range.begin;
    if (*needed > 0 && file_offset % size_of(*type->dtype) != 0) {
      return bad_tensor(name, "data begins at byte " + std::to_string(file_offset) +
                                  " of the file; expected a multiple of " +
                                  std::to_string(size_of(*type->dtype)));
    }
    contents_.tensors.emplace(name, TensorInfo{name, *type->dtype, std::move(shape),
                                               sections_.data.data() + range.begin, *needed});
  }
  ranges_.push_back(std::move(range));
  return Ok{};
}

Status HeaderReader::check_tiling() {
  std::ranges::sort(ranges_, [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::int64_t covered = 0;
  for (const Range& range : ranges_) {
    if (range.begin != covered) {
      return bad_tensor(range.name, "data begins at byte " + std::to_string(range.begin) +
                                        " of the data section; expected " +
                                        std::to_string(covered) +
                                        ", where the tensor before it ends");
    }
    covered = range.end;
  }
  if (std::cmp_not_equal(covered, sections_.data.size())) {
    return Error{ErrorCode::kBadFile,
                 file_ + ": the tensors end at byte " + std::to_string(covered) +
                     " of the data section, which has " + std::to_string(sections_.data.size()) +
                     " bytes; expected no bytes after the last tensor"};
  }
  return Ok{};
}

}  // namespace

Result<SafetensorsContents> parse_safetensors(std::span<const std::byte> bytes,
                                              const std::string& file) {
  TIDEKV_ASSIGN(const Sections sections, split(bytes, file));
  HeaderReader reader(sections, file);
  constexpr JsonLimits kLimits = {.max_depth = 8, .max_values = 1'000'000};
  TIDEKV_TRY(for_each_json_member(
      sections.header, file + ": header", kLimits,
      [&](JsonMember member) { return reader.read_member(std::move(member)); }));
  TIDEKV_TRY(reader.check_tiling());
  return reader.take();
}

}  // namespace tidekv
