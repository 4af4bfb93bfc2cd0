#include "oracle/host_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "oracle/block_values.h"

namespace tidekv::oracle {

HostTensor::HostTensor(DType dtype, std::int64_t rows, std::int64_t cols)
    : dtype_(dtype),
      rows_(rows),
      cols_(cols),
      bytes_(static_cast<std::size_t>(rows * row_bytes(dtype, cols))) {}

double HostTensor::at(std::int64_t row, std::int64_t col) const {
  const std::byte* from = bytes_.data() + byte_at(row, col);
  if (is_quantised(dtype_)) {
    return block_value(dtype_, from, col % traits_of(dtype_).block_len);
  }
  if (dtype_ == DType::kI32) {
    std::int32_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  if (dtype_ == DType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return static_cast<double>(value);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return static_cast<double>(dtype_ == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits));
}

void HostTensor::set(std::int64_t row, std::int64_t col, double value) {
  std::byte* to = bytes_.data() + byte_at(row, col);
  if (dtype_ == DType::kI32) {
    const auto stored = static_cast<std::int32_t>(value);
    std::memcpy(to, &stored, sizeof(stored));
  } else if (dtype_ == DType::kF32) {
    const auto stored = static_cast<float>(value);
    std::memcpy(to, &stored, sizeof(stored));
  } else {
    const std::uint16_t stored =
        dtype_ == DType::kF16 ? double_to_f16(value) : float_to_bf16(static_cast<float>(value));
    std::memcpy(to, &stored, sizeof(stored));
  }
}

void HostTensor::fill(double value) {
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t col = 0; col < cols_; ++col) {
      set(row, col, value);
    }
  }
}

HostTensor HostTensor::rows_at(std::int64_t first, std::int64_t count) const {
  HostTensor part(dtype_, count, cols_);
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(byte_at(first, 0)), part.bytes_.size(),
              part.bytes_.begin());
  return part;
}

void HostTensor::put_rows(std::int64_t first, const HostTensor& rows) {
  std::copy(rows.bytes_.begin(), rows.bytes_.end(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(byte_at(first, 0)));
}

std::vector<double> HostTensor::values() const {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows_ * cols_));
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t col = 0; col < cols_; ++col) {
      values.push_back(at(row, col));
    }
  }
  return values;
}

std::uint16_t double_to_f16(double value) {
  constexpr int kMinExponent = -14;
  constexpr int kMantissaBits = 10;
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | 0x7E00U);
  }
  if (magnitude >= 65520.0) {  // halfway between the largest finite value and the next
    return static_cast<std::uint16_t>(sign | 0x7C00U);
  }
  const int exponent =
      magnitude == 0.0 ? kMinExponent : std::max(kMinExponent, std::ilogb(magnitude));
  // Whole units in the last place; a carry into the next binade comes out right by itself.
  const auto units =
      static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent)));
  const auto biased = static_cast<unsigned>(exponent - kMinExponent) << kMantissaBits;
  return static_cast<std::uint16_t>(sign | (biased + units));
}

double Random::uniform(double low, double high) {
  constexpr double kUnit = 0x1p-53;
  return low + (high - low) * (static_cast<double>(engine_() >> 11) * kUnit);
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(0.0, 1.0)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(0.0, 1.0));
}

std::int64_t Random::below(std::int64_t limit) {
  return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
}

HostTensor Random::normals(DType dtype, std::int64_t rows, std::int64_t cols, double scale) {
  HostTensor tensor(dtype, rows, cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      tensor.set(row, col, scale * normal());
    }
  }
  return tensor;
}

HostTensor Random::uniforms(DType dtype, std::int64_t rows, std::int64_t cols, double low,
                            double high) {
  HostTensor tensor(dtype, rows, cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      tensor.set(row, col, uniform(low, high));
    }
  }
  return tensor;
}

HostTensor Random::blocks(DType dtype, std::int64_t rows, std::int64_t cols) {
  HostTensor tensor(dtype, rows, cols);
  for (std::byte& byte : tensor.bytes()) {
    byte = static_cast<std::byte>(below(256));
  }
  const BlockScales at = block_scales(dtype);
  const auto put = [](std::byte* to, double value) {
    const std::uint16_t bits = double_to_f16(value);
    std::memcpy(to, &bits, sizeof(bits));
  };
  const DTypeTraits traits = traits_of(dtype);
  for (std::int64_t block = 0; block < rows * cols / traits.block_len; ++block) {
    std::byte* bytes = tensor.bytes().data() + block * traits.block_bytes;
    const double sign = below(2) == 0 ? 1.0 : -1.0;  // files have scales of both
    put(bytes + at.scale, sign * uniform(0.5, 2.0) / largest_factor(dtype));
    if (at.min >= 0) {
      put(bytes + at.min, uniform(-1.0, 1.0) / (traits.block_len == 256 ? 63.0 : 1.0));
    }
  }
  return tensor;
}

}  // namespace tidekv::oracle
