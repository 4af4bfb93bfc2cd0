// Quantised blocks against what gguf reads in them (tests/data/quantised_blocks), and the two ways
// the kernels read them against each other.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "tensor/dtype.h"

namespace tidekv::cpu {
namespace {

struct TestedType {
  DType dtype;
  BlockType type;
};

constexpr TestedType kTypes[] = {{DType::kQ80, BlockType::kQ80}, {DType::kQ40, BlockType::kQ40},
                                 {DType::kQ41, BlockType::kQ41}, {DType::kQ50, BlockType::kQ50},
                                 {DType::kQ51, BlockType::kQ51}, {DType::kQ4K, BlockType::kQ4K},
                                 {DType::kQ5K, BlockType::kQ5K}, {DType::kQ6K, BlockType::kQ6K}};

std::string read_file(DType dtype, const std::string& suffix) {
  const std::string path = std::string(TIDEKV_SOURCE_DIR) + "/tests/data/quantised_blocks/" +
                           std::string(name_of(dtype)) + suffix;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The blocks of a file as one row, and its elements as gguf reads them.
struct Blocks {
  explicit Blocks(DType dtype) : bytes(read_file(dtype, ".blocks")) {
    const std::string floats = read_file(dtype, ".f32");
    values.resize(floats.size() / sizeof(float));
    std::memcpy(values.data(), floats.data(), floats.size());
    EXPECT_GT(num_elements(), 0);
    EXPECT_EQ(row_bytes(dtype, num_elements()), static_cast<std::int64_t>(bytes.size()));
  }
  std::int64_t num_elements() const { return static_cast<std::int64_t>(values.size()); }

  std::string bytes;
  std::vector<float> values;
};

struct Table {
  const char* name;
  const Kernels* kernels;
};

class QuantisedBlocks : public testing::TestWithParam<Table> {
 protected:
  const Kernels& kernels() const { return *GetParam().kernels; }
};

std::vector<Table> available_tables() {
  std::vector<Table> tables = {{"portable", &kPortableKernels}};
#ifdef TIDEKV_CPU_AVX2
  if (avx2_available()) {
    tables.push_back({"avx2", &kAvx2Kernels});
  }
#endif
#ifdef TIDEKV_CPU_AVX512
  if (avx512_available()) {
    tables.push_back({"avx512", &kAvx512Kernels});
  }
#endif
  return tables;
}

INSTANTIATE_TEST_SUITE_P(On, QuantisedBlocks, testing::ValuesIn(available_tables()),
                         [](const auto& table) { return table.param.name; });

TEST_P(QuantisedBlocks, ExpandToTheBitsThatGgufReads) {
  for (const TestedType& tested : kTypes) {
    const Blocks blocks(tested.dtype);
    std::vector<float> got(blocks.values.size(), -1.0F);
    kernels().expand(blocks.bytes.data(), tested.type, 0, blocks.num_elements(), got.data());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]),
                std::bit_cast<std::uint32_t>(blocks.values[i]))
          << name_of(tested.dtype) << ", element " << i << ": " << got[i] << ", gguf "
          << blocks.values[i];
    }
  }
}

TEST_P(QuantisedBlocks, ExpandAPieceToItsPartOfTheWholeAndNothingBeside) {
  for (const TestedType& tested : kTypes) {
    const Blocks blocks(tested.dtype);
    const std::int64_t step = traits_of(tested.dtype).block_len == 32 ? 32 : 128;
    for (const std::int64_t first : {0L, step, 3 * step, 16 * step}) {
      for (const std::int64_t n : {0L, step, 2 * step, 7 * step}) {
        std::vector<float> got(static_cast<std::size_t>(n + 1), -1.0F);
        kernels().expand(blocks.bytes.data(), tested.type, first, n, got.data());
        EXPECT_EQ(std::memcmp(got.data(), blocks.values.data() + first,
                              static_cast<std::size_t>(n) * sizeof(float)),
                  0)
            << name_of(tested.dtype) << ", " << n << " from " << first;
        EXPECT_EQ(got.back(), -1.0F);
      }
    }
  }
}

// A row that is 1 at one element and 0 elsewhere picks that element out of finite ones.
TEST_P(QuantisedBlocks, AreMultipliedAsTheyExpand) {
  for (const TestedType& tested : kTypes) {
    const Blocks blocks(tested.dtype);
    const std::int64_t n = blocks.num_elements() / 256 * 256 < kDotDepth
                               ? blocks.num_elements() / 256 * 256
                               : kDotDepth;
    std::vector<float> picks(static_cast<std::size_t>(n), 0.0F);
    const BlockRows row{blocks.bytes.data(), tested.type, 0, 1};
    for (std::size_t i = 0; i < picks.size(); ++i) {
      picks[i] = 1.0F;
      float got = -1.0F;
      kernels().block_dots(row, n, picks.data(), Start::kZero, &got);
      ASSERT_EQ(got, blocks.values[i]) << name_of(tested.dtype) << ", element " << i;
      picks[i] = 0.0F;
    }
  }
}

// Rows up to the last byte of a file: what lies behind it may not be mapped.
TEST_P(QuantisedBlocks, AreReadToTheirEndAndNoFurther) {
  const auto page = static_cast<std::size_t>(getpagesize());
  auto* pages = static_cast<std::byte*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  std::byte* const end = pages + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  for (const TestedType& tested : kTypes) {
    const Blocks blocks(tested.dtype);
    const DTypeTraits traits = traits_of(tested.dtype);
    for (const std::int64_t rows : {1, 2, 4, 5}) {
      const std::int64_t row_size = 2 * traits.block_bytes;
      const std::int64_t n = 2 * traits.block_len;
      std::byte* const data = end - rows * row_size;
      std::memcpy(data, blocks.bytes.data(), static_cast<std::size_t>(rows * row_size));
      const std::vector<float> ones(static_cast<std::size_t>(n), 1.0F);
      std::vector<float> sums(static_cast<std::size_t>(rows), -1.0F);
      kernels().block_dots({data, tested.type, row_size, rows}, n, ones.data(), Start::kZero,
                           sums.data());
      std::vector<float> last(static_cast<std::size_t>(n));
      kernels().expand(end - row_size, tested.type, 0, n, last.data());
      float alone = -1.0F;
      kernels().block_dots({end - row_size, tested.type, row_size, 1}, n, ones.data(), Start::kZero,
                           &alone);
      EXPECT_EQ(sums.back(), alone) << name_of(tested.dtype) << ", " << rows << " rows";
    }
  }
  munmap(pages, 2 * page);
}

TEST_P(QuantisedBlocks, ASumFromZeroAddedEqualsAddingIt) {
  for (const TestedType& tested : kTypes) {
    const Blocks blocks(tested.dtype);
    const DTypeTraits traits = traits_of(tested.dtype);
    const std::int64_t n = 2 * traits.block_len;
    std::vector<float> a(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i % 7) - 2.5F;
    }
    constexpr std::int64_t kRows = 5;
    const BlockRows rows{blocks.bytes.data() + 4 * traits.block_bytes, tested.type,
                         traits.block_bytes * 3, kRows};
    std::vector<float> sums(kRows);
    std::vector<float> added(kRows, 0.75F);
    kernels().block_dots(rows, n, a.data(), Start::kZero, sums.data());
    kernels().block_dots(rows, n, a.data(), Start::kAdd, added.data());
    for (std::size_t r = 0; r < kRows; ++r) {
      EXPECT_EQ(added[r], 0.75F + sums[r]) << name_of(tested.dtype) << ", row " << r;
    }
  }
}

}  // namespace
}  // namespace tidekv::cpu
