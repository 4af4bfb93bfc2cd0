#include "io/gguf_tensor_type.h"

#include <algorithm>
#include <iterator>

namespace tidekv {
namespace {

constexpr GgufTensorType readable(std::uint32_t id, std::string_view spelling, DType dtype) {
  return {id, spelling, traits_of(dtype).block_len, traits_of(dtype).block_bytes, dtype};
}

constexpr GgufTensorType kTensorTypes[] = {
    readable(0, "F32", DType::kF32),
    readable(1, "F16", DType::kF16),
    readable(2, "Q4_0", DType::kQ40),
    readable(3, "Q4_1", DType::kQ41),
    readable(6, "Q5_0", DType::kQ50),
    readable(7, "Q5_1", DType::kQ51),
    readable(8, "Q8_0", DType::kQ80),
    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    readable(12, "Q4_K", DType::kQ4K),
    readable(13, "Q5_K", DType::kQ5K),
    readable(14, "Q6_K", DType::kQ6K),
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},
    {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},
    {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, {}},
    {25, "I16", 1, 2, {}},
    {26, "I32", 1, 4, {}},
    {27, "I64", 1, 8, {}},
    {28, "F64", 1, 8, {}},
    {29, "IQ1_M", 256, 56, {}},
    readable(30, "BF16", DType::kBF16),
    {34, "TQ1_0", 256, 54, {}},
    {35, "TQ2_0", 256, 66, {}},
    {39, "MXFP4", 32, 17, {}},
    {40, "NVFP4", 64, 36, {}},
    {41, "Q1_0", 128, 18, {}},
};

}  // namespace

GgufTensorType gguf_tensor_type(std::uint32_t id) {
  const auto* known = std::ranges::find(kTensorTypes, id, &GgufTensorType::id);
  return known == std::end(kTensorTypes) ? GgufTensorType{id, "", 0, 1, {}} : *known;
}

std::string name_of(const GgufTensorType& type) {
  return type.spelling.empty() ? std::to_string(type.id) : std::string(type.spelling);
}

}  // namespace tidekv
