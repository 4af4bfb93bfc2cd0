// Little-endian values one after the other, from bytes that may end anywhere.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace tidekv {

static_assert(std::endian::native == std::endian::little);

// The value at an address of any alignment.
template <typename T>
T load_little_endian(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Each read gives nothing, and stays where it is, if fewer bytes are left than it needs.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::span<const std::byte> all() const { return bytes_; }  // read or not
  std::size_t left() const { return bytes_.size() - position_; }

  std::optional<std::span<const std::byte>> take(std::uint64_t count) {
    if (count > left()) {
      return std::nullopt;
    }
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }

  template <typename T>
  std::optional<T> value() {
    const auto taken = take(sizeof(T));
    return taken ? std::optional(load_little_endian<T>(taken->data())) : std::nullopt;
  }

  // A length of 8 bytes, then as many bytes of text.
  std::optional<std::string_view> string() {
    const std::size_t start = position_;
    if (const auto length = value<std::uint64_t>()) {
      if (const auto text = take(*length)) {
        return std::string_view(reinterpret_cast<const char*>(text->data()), text->size());
      }
    }
    position_ = start;
    return std::nullopt;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace tidekv
