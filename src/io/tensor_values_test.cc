#include "io/tensor_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "gguf/gguf_writer.h"

namespace tidekv {
namespace {

using gguf::GgufWriter;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint16_t kHalfInfinity = 0x7C00;
constexpr std::uint16_t kHalfNan = 0xFC01;

// The complaint about a file of these bytes, or "finite".
std::string complaint(const std::string& bytes) {
  const std::string path =
      testing::TempDir() + "tidekv_values_" + std::to_string(::getpid()) + ".weights";
  std::ofstream(path, std::ios::binary) << bytes;
  const Result<TensorFile> file = TensorFile::open(path);
  std::filesystem::remove(path);
  if (!file.ok()) {
    return file.error().message;
  }
  const Status status = check_tensor_values(file.value());
  return status.ok() ? "finite" : status.error().message;
}

// `data` of type F16, with `bits` at a byte.
std::string with_bits(std::string data, std::size_t at, std::uint16_t bits) {
  std::memcpy(data.data() + at, &bits, sizeof bits);
  return data;
}

std::string file_of(DType dtype, std::int64_t cols, const std::string& data) {
  return GgufWriter()
      .tensor("a.good", {1}, DType::kF32, gguf::number(1.0F))
      .tensor("bad", {cols}, dtype, data)
      .file();
}

TEST(TensorValues, AcceptsEveryFiniteNumber) {
  std::string floats;
  for (const float value :
       {0.0F, -0.0F, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
        std::numeric_limits<float>::denorm_min()}) {
    floats += gguf::number(value);
  }
  EXPECT_EQ(complaint(file_of(DType::kF32, 5, floats)), "finite");
  // All ones but for one bit of the exponent.
  EXPECT_EQ(complaint(file_of(DType::kF16, 2, "\xFF\x7B\xFF\xFB")), "finite");
  EXPECT_EQ(complaint(file_of(DType::kBF16, 2, "\x7F\x7F\x7F\xFF")), "finite");
}

// The tensors are longer than what is looked at in one piece.
TEST(TensorValues, NamesTheFirstElementThatIsNotFinite) {
  constexpr std::size_t kCount = 10000;
  for (const std::size_t at : {0U, 4095U, 4096U, 9999U}) {
    std::vector<float> floats(kCount, 1.0F);
    floats[kCount - 1] = INFINITY;
    floats[at] = -INFINITY;
    std::string data;
    for (const float value : floats) {
      data += gguf::number(value);
    }
    EXPECT_THAT(complaint(file_of(DType::kF32, kCount, data)),
                AllOf(HasSubstr("tensor 'bad' of type f32 holds infinity at element " +
                                std::to_string(at) + ";"),
                      HasSubstr("expected finite numbers")));
  }
  const std::string zeros(2 * kCount, '\0');
  EXPECT_THAT(complaint(file_of(DType::kF16, kCount, with_bits(zeros, 14, kHalfNan))),
              HasSubstr("tensor 'bad' of type f16 holds NaN at element 7;"));
  EXPECT_THAT(complaint(file_of(DType::kBF16, kCount, with_bits(zeros, 16, 0x7F81))),
              HasSubstr("tensor 'bad' of type bf16 holds NaN at element 8;"));
  EXPECT_THAT(complaint(file_of(DType::kBF16, kCount, with_bits(zeros, 16, 0xFF80))),
              HasSubstr("holds infinity at element 8;"));
}

// Where in a block of each type its numbers of type F16 begin.
struct Scales {
  DType dtype;
  std::vector<std::size_t> at;
};

TEST(TensorValues, LooksAtEveryScaleAndMinimumOfQuantisedBlocks) {
  for (const Scales& scales :
       {Scales{DType::kQ80, {0}}, Scales{DType::kQ40, {0}}, Scales{DType::kQ41, {0, 2}},
        Scales{DType::kQ50, {0}}, Scales{DType::kQ51, {0, 2}}, Scales{DType::kQ4K, {0, 2}},
        Scales{DType::kQ5K, {0, 2}}, Scales{DType::kQ6K, {208}}}) {
    const DTypeTraits traits = traits_of(scales.dtype);
    const auto block_bytes = static_cast<std::size_t>(traits.block_bytes);
    std::string finite(3 * block_bytes, '\xFF');  // NaN wherever nobody looks
    for (std::size_t block = 0; block < 3; ++block) {
      for (const std::size_t at : scales.at) {
        finite = with_bits(finite, block * block_bytes + at, 0x7BFF);
      }
    }
    const std::int64_t cols = 3 * traits.block_len;
    EXPECT_EQ(complaint(file_of(scales.dtype, cols, finite)), "finite") << traits.name;
    for (const std::size_t at : scales.at) {
      EXPECT_THAT(complaint(file_of(scales.dtype, cols,
                                    with_bits(finite, 2 * block_bytes + at, kHalfInfinity))),
                  HasSubstr("tensor 'bad' of type " + std::string(traits.name) +
                            " holds infinity in the scales of block 2;"));
      EXPECT_THAT(
          complaint(file_of(scales.dtype, cols, with_bits(finite, block_bytes + at, kHalfNan))),
          HasSubstr(" holds NaN in the scales of block 1;"));
    }
  }
}

TEST(TensorValues, LooksIntoSafetensorsToo) {
  const std::string header = R"({"s":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )";
  EXPECT_THAT(complaint(gguf::number(std::uint64_t{header.size()}) + header + gguf::number(1.0F) +
                        gguf::number(NAN)),
              HasSubstr("tensor 's' of type f32 holds NaN at element 1;"));
}

}  // namespace
}  // namespace tidekv
