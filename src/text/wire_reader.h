// The fields of one protocol buffers message, read one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidekv/result.h"

namespace tidekv {

// One field: a number for the two kinds that have one, else its bytes.
struct WireField {
  enum class Kind : std::uint8_t { kVarint, kFixed64, kBytes, kFixed32 };
  std::int64_t number = 0;  // the field's
  Kind kind = Kind::kVarint;
  std::uint64_t value = 0;  // of a varint or fixed-width field
  std::string_view bytes;   // of a field of bytes
};

class WireReader {
 public:
  // `where` leads every error: "<file>: pieces[3]". Both outlive the reader.
  WireReader(std::string_view message, const std::string& where)
      : rest_(message), whole_len_(message.size()), where_(&where) {}

  bool done() const { return rest_.empty(); }
  Result<WireField> next();

  // Checks that `field`, called `name`, is of the kind that it must be.
  Status expect(const WireField& field, WireField::Kind kind, std::string_view name) const;

 private:
  Result<std::uint64_t> varint();
  Result<std::string_view> take(std::uint64_t len);
  Error bad(const std::string& message) const;

  std::string_view rest_;
  std::size_t whole_len_;
  const std::string* where_;
};

}  // namespace tidekv
