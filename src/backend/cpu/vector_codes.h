// Rows of codes in vectors (Kernels in kernels.h says what each does).
#pragma once

#ifdef __AVX2__

#include "backend/cpu/kernels.h"
#include "backend/cpu/vectors.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kCodesAtOnce = 16;

// Numbers of `kBits` bits, two to a byte of twice as many: to a byte each, the low one first.
template <int kBits>
inline __m128i split_bytes(__m128i bytes) {
  const __m128i mask = _mm_set1_epi8((1 << kBits) - 1);
  const __m128i low = _mm_and_si128(bytes, mask);
  const __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, kBits), mask);
  return _mm_unpacklo_epi8(low, high);
}

// 16 codes, a byte each. Of a row's last word or two no byte behind them is read.
template <int kBits>
inline __m128i load_codes(const char* at, std::int64_t count) {
  if constexpr (kBits == 2) {
    int word = 0;
    __builtin_memcpy(&word, at, sizeof(word));
    return split_bytes<2>(split_bytes<4>(_mm_cvtsi32_si128(word)));
  } else {
    long long words = 0;
    __builtin_memcpy(&words, at, count > kCodesAtOnce / 2 ? 8 : 4);
    return split_bytes<4>(_mm_cvtsi64_si128(words));
  }
}

// What a vector of codes from `i` on has for a scale or a minimum.
inline Vector of_groups(const float* numbers, std::int64_t group_len, std::int64_t i,
                        std::int64_t count) {
  if (group_len == 1) {
    return load<Element::kF32>(numbers, i, first_lanes(count));
  }
  if (group_len % kLanes == 0) {
    return all_lanes(numbers[i / group_len]);
  }
  float lanes[kLanes] = {};
  for (std::int64_t lane = 0; lane < kLanes && lane < count; ++lane) {
    lanes[lane] = numbers[(i + lane) / group_len];
  }
  return load<Element::kF32>(lanes, 0);
}

template <int kBits>
inline void expand_row_of_codes(const CodeRow& row, std::int64_t n, float* to) {
  const auto* at = static_cast<const char*>(row.codes);
  for (std::int64_t i = 0; i < n; i += kCodesAtOnce) {
    __m128i codes = load_codes<kBits>(at, n - i);
    TIDEKV_UNROLL
    for (std::int64_t j = 0; j < kCodesAtOnce; j += kLanes) {
      const std::int64_t count = n - i - j;
      if (count > 0) {
        const Vector scaled =
            multiply(from_bytes(codes), of_groups(row.scales, row.group_len, i + j, count));
        store<Element::kF32>(add(scaled, of_groups(row.minima, row.group_len, i + j, count)), to,
                             i + j, first_lanes(count));
      }
      codes = _mm_srli_si128(codes, kLanes % kCodesAtOnce);
    }
    at += kCodesAtOnce * kBits / 8;
  }
}

void expand_codes(const CodeRow& row, std::int64_t n, float* to) {
  if (row.bits == 2) {
    expand_row_of_codes<2>(row, n, to);
  } else {
    expand_row_of_codes<4>(row, n, to);
  }
}

}  // namespace
}  // namespace tidekv::cpu

#endif
