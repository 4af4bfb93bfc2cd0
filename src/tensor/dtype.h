// Element types, and the scalar conversions between them.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace tidekv {

// The plain types, then the block-quantised types of GGUF files, which only weights have: a row is
// a sequence of blocks, each of `len` elements in `bytes` bytes.
enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kI32,
  kQ80,
  kQ40,
  kQ41,
  kQ50,
  kQ51,
  kQ4K,
  kQ5K,
  kQ6K,
};

struct DTypeTraits {
  std::string_view name;
  std::int64_t block_len = 1;    // elements
  std::int64_t block_bytes = 0;  // of one block
};

constexpr DTypeTraits traits_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {"f32", 1, 4};
    case DType::kF16:
      return {"f16", 1, 2};
    case DType::kBF16:
      return {"bf16", 1, 2};
    case DType::kI32:
      return {"i32", 1, 4};
    case DType::kQ80:
      return {"q8_0", 32, 34};
    case DType::kQ40:
      return {"q4_0", 32, 18};
    case DType::kQ41:
      return {"q4_1", 32, 20};
    case DType::kQ50:
      return {"q5_0", 32, 22};
    case DType::kQ51:
      return {"q5_1", 32, 24};
    case DType::kQ4K:
      return {"q4_k", 256, 144};
    case DType::kQ5K:
      return {"q5_k", 256, 176};
    case DType::kQ6K:
      return {"q6_k", 256, 210};
  }
  return {"?", 1, 0};
}

constexpr std::string_view name_of(DType dtype) { return traits_of(dtype).name; }

constexpr bool is_quantised(DType dtype) { return traits_of(dtype).block_len > 1; }

// Bytes of one element of a plain type.
constexpr std::int64_t size_of(DType dtype) { return traits_of(dtype).block_bytes; }

// Bytes of `cols` elements that follow one another in a row; `cols` is a multiple of the block.
constexpr std::int64_t row_bytes(DType dtype, std::int64_t cols) {
  const DTypeTraits traits = traits_of(dtype);
  return cols / traits.block_len * traits.block_bytes;
}

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x0040U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Exact, subnormals included.
constexpr float f16_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0x1FU) {
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

}  // namespace tidekv
