#include "io/tensor_values.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "base/json_value.h"
#include "io/byte_reader.h"

namespace tidekv {
namespace {

// Where a type has floating-point numbers: at these bytes of each block of traits_of(dtype).
struct FloatFields {
  std::array<std::int64_t, 2> at = {};
  std::size_t count = 1;
};

FloatFields float_fields(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ80:
    case DType::kQ40:
    case DType::kQ50:
      return {{0}, 1};
    case DType::kQ41:
    case DType::kQ51:
    case DType::kQ4K:
    case DType::kQ5K:
      return {{0, 2}, 2};  // scale and minimum
    case DType::kQ6K:
      return {{208}, 1};  // after 128 + 64 bytes of values and 16 of scales
    case DType::kI32:
      break;
  }
  return {{}, 0};
}

// Block number and the bits of the first number that is not finite.
template <typename Bits>
struct Found {
  std::int64_t index = 0;
  Bits bits = 0;
};

// All bits of the exponent set: infinity or NaN. `step` is the distance of the numbers in bytes,
// a constant where they are dense: such loops are vectorised.
template <typename Bits, typename Step>
std::optional<Found<Bits>> first_not_finite(const std::byte* data, std::int64_t count, Step step,
                                            Bits exponent) {
  constexpr std::int64_t kPiece = 4096;  // numbers: looks into a piece only if it holds one
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const std::int64_t end = std::min(count, begin + kPiece);
    Bits any = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto bits = load_little_endian<Bits>(data + i * step);
      any = static_cast<Bits>(any | static_cast<Bits>((bits & exponent) == exponent));
    }
    for (std::int64_t i = begin; any != 0 && i < end; ++i) {
      const auto bits = load_little_endian<Bits>(data + i * step);
      if ((bits & exponent) == exponent) {
        return Found<Bits>{i, bits};
      }
    }
  }
  return std::nullopt;
}

struct Fault {
  std::int64_t index = 0;  // of the element, or of the block
  bool is_nan = false;
};

template <typename Bits>
std::optional<Fault> first_fault(const TensorInfo& tensor, Bits exponent, Bits mantissa) {
  constexpr std::integral_constant<std::int64_t, sizeof(Bits)> kDense;
  const std::int64_t step = traits_of(tensor.dtype).block_bytes;
  const std::int64_t count = tensor.num_bytes / step;
  const FloatFields fields = float_fields(tensor.dtype);
  std::optional<Fault> first;
  for (std::size_t i = 0; i < fields.count; ++i) {
    const std::byte* data = tensor.data + fields.at[i];
    const auto found = step == kDense ? first_not_finite(data, count, kDense, exponent)
                                      : first_not_finite(data, count, step, exponent);
    if (found && (!first || found->index < first->index)) {
      first = {found->index, (found->bits & mantissa) != 0};
    }
  }
  return first;
}

std::optional<Fault> first_fault(const TensorInfo& tensor) {
  switch (tensor.dtype) {
    case DType::kF32:
      return first_fault<std::uint32_t>(tensor, 0x7F800000U, 0x007FFFFFU);
    case DType::kBF16:
      return first_fault<std::uint16_t>(tensor, 0x7F80, 0x007F);
    default:  // F16 itself, or F16 numbers in blocks
      return first_fault<std::uint16_t>(tensor, 0x7C00, 0x03FF);
  }
}

}  // namespace

Status check_tensor_values(const TensorFile& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (const std::optional<Fault> fault = first_fault(tensor)) {
      const bool block = is_quantised(tensor.dtype);
      return Error{ErrorCode::kBadFile, file.path() + ": tensor " + in_quotes(name) + " of type " +
                                            std::string(name_of(tensor.dtype)) + " holds " +
                                            (fault->is_nan ? "NaN" : "infinity") +
                                            (block ? " in the scales of block " : " at element ") +
                                            std::to_string(fault->index) +
                                            "; expected finite numbers"};
    }
  }
  return Ok{};
}

}  // namespace tidekv
