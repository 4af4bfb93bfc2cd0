#include "text/wire_reader.h"

namespace tidekv {
namespace {

constexpr unsigned kMaxVarintBytes = 10;

std::string_view name_of(WireField::Kind kind) {
  switch (kind) {
    case WireField::Kind::kVarint:
      return "a whole number";
    case WireField::Kind::kFixed64:
      return "a number of 8 bytes";
    case WireField::Kind::kBytes:
      return "bytes";
    case WireField::Kind::kFixed32:
      return "a number of 4 bytes";
  }
  return "";
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | static_cast<std::uint8_t>(bytes[i - 1]);
  }
  return value;
}

}  // namespace

Error WireReader::bad(const std::string& message) const {
  return Error{ErrorCode::kBadFile, *where_ + ": at byte " +
                                        std::to_string(whole_len_ - rest_.size()) + " of " +
                                        std::to_string(whole_len_) + ": " + message};
}

Result<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < kMaxVarintBytes && i < rest_.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(rest_[i]);
    value |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if (byte < 0x80U) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return bad("a number that does not end; expected at most 10 bytes, the last below 128");
}

Result<std::string_view> WireReader::take(std::uint64_t len) {
  if (len > rest_.size()) {
    return bad("a field of " + std::to_string(len) + " bytes; expected at most the " +
               std::to_string(rest_.size()) + " that are left");
  }
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(len));
  rest_.remove_prefix(taken.size());
  return taken;
}

Result<WireField> WireReader::next() {
  TIDEKV_ASSIGN(const std::uint64_t key, varint());
  WireField field;
  field.number = static_cast<std::int64_t>(key >> 3U);
  switch (key & 7U) {
    case 0: {
      field.kind = WireField::Kind::kVarint;
      TIDEKV_ASSIGN(field.value, varint());
      return field;
    }
    case 1: {
      field.kind = WireField::Kind::kFixed64;
      TIDEKV_ASSIGN(const std::string_view bytes, take(8));
      field.value = little_endian(bytes);
      return field;
    }
    case 2: {
      field.kind = WireField::Kind::kBytes;
      TIDEKV_ASSIGN(const std::uint64_t len, varint());
      TIDEKV_ASSIGN(field.bytes, take(len));
      return field;
    }
    case 5: {
      field.kind = WireField::Kind::kFixed32;
      TIDEKV_ASSIGN(const std::string_view bytes, take(4));
      field.value = little_endian(bytes);
      return field;
    }
    default:
      return bad("a field of wire type " + std::to_string(key & 7U) + "; expected 0, 1, 2 or 5");
  }
}

Status WireReader::expect(const WireField& field, WireField::Kind kind,
                          std::string_view name) const {
  if (field.kind != kind) {
    return Error{ErrorCode::kBadFile, *where_ + ": " + std::string(name) + " is " +
                                          std::string(name_of(field.kind)) + "; expected " +
                                          std::string(name_of(kind))};
  }
  return Ok{};
}

}  // namespace tidekv
