// What the conformance suite cannot see through the interface: where bytes lie, the exact numbers
// of single kernels, and reads past the end of a row.
#include "backend/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/kernels.h"
#include "tensor/dtype.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tidekv::cpu {
namespace {

MemoryPlan plan_of(std::vector<PlannedAllocation> allocations, std::int64_t arena_bytes) {
  MemoryPlan plan;
  plan.allocations = std::move(allocations);
  plan.arena_bytes = arena_bytes;
  return plan;
}

// Whether the first floats of `a` are those of `b`, bit for bit.
bool begins_with(const std::vector<float>& a, const std::vector<float>& b, std::int64_t count) {
  return std::equal(a.begin(), a.begin() + count, b.begin(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

class CpuMemory : public testing::Test {
 protected:
  ThreadPool pool_{2};
  std::unique_ptr<Backend> backend_ = create_portable({.pool = &pool_});
};

TEST_F(CpuMemory, PlacesAllocationsAtTheirPlannedOffsets) {
  ASSERT_TRUE(backend_->reserve(plan_of({{100, 0}, {64, 256}}, 320)).ok());
  const auto first = backend_->allocate({{Component::kKernelPanels, 100}});
  const auto second = backend_->allocate({{Component::kKernelPanels, 64}});
  ASSERT_TRUE(first.ok() && second.ok());
  std::byte* const begin = first.value().view(DType::kBF16, 1, 50).device_ptr();
  std::byte* const end = second.value().view(DType::kBF16, 1, 32).device_ptr();
  EXPECT_EQ(end - begin, 256);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 64, 0U);
}

TEST_F(CpuMemory, BeginsWhereAHugePageMay) {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto address_of = [](const Buffer& buffer) {
    return reinterpret_cast<std::uintptr_t>(buffer.view(DType::kF32, 1, 1).device_ptr());
  };
  ASSERT_TRUE(backend_->reserve(plan_of({{100, 0}}, 100)).ok());
  const auto planned = backend_->allocate({{Component::kKernelPanels, 100}});
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(address_of(planned.value()) % kHugePage, 0);

  const std::unique_ptr<Backend> without_plan = create_portable({.pool = &pool_});
  const auto large = without_plan->allocate({{Component::kKernelPanels, std::int64_t{3} << 20}});
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(address_of(large.value()) % kHugePage, 0);
}

TEST_F(CpuMemory, ReportsArenasTheSystemRefuses) {
  constexpr std::int64_t kTooMuch = std::int64_t{1} << 60;
  const Status status = backend_->reserve(plan_of({{kTooMuch, 0}}, kTooMuch));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
  EXPECT_THAT(status.error().message, testing::HasSubstr("1152921504606846976 bytes"));
  EXPECT_EQ(backend_->reserved_bytes(), 0);
}

TEST_F(CpuMemory, KeepsPagesUntouchedInReleaseAndFillsThemWithNanInDebug) {
  constexpr std::int64_t kBytes = 1 << 20;
  ASSERT_TRUE(backend_->reserve(plan_of({{kBytes, 0}}, kBytes)).ok());
  const auto buffer = backend_->allocate({{Component::kKernelPanels, kBytes}});
  ASSERT_TRUE(buffer.ok());
  const DeviceView view = buffer.value().view(DType::kF32, 1, kBytes / 4);
#ifdef NDEBUG
  std::vector<unsigned char> resident(static_cast<std::size_t>(kBytes / getpagesize()));
  ASSERT_EQ(mincore(view.device_ptr(), kBytes, resident.data()), 0);
  EXPECT_THAT(resident, testing::Each(testing::Truly([](int page) { return (page & 1) == 0; })));
#else
  float last = 0.0F;
  std::memcpy(&last, view.device_ptr() + kBytes - 4, 4);
  EXPECT_TRUE(std::isnan(last));
#endif
}

#if defined(__SANITIZE_ADDRESS__)
TEST_F(CpuMemory, PoisonsGuardGapsAndReleasedBytes) {
  ASSERT_TRUE(backend_->reserve(plan_of({{64, 0}, {64, 128}}, 192)).ok());
  auto first = backend_->allocate({{Component::kKernelPanels, 64}});
  ASSERT_TRUE(first.ok());
  std::byte* const data = first.value().view(DType::kF32, 1, 16).device_ptr();
  EXPECT_FALSE(__asan_address_is_poisoned(data + 63));
  EXPECT_TRUE(__asan_address_is_poisoned(data + 64));
  EXPECT_TRUE(__asan_address_is_poisoned(data + 128));
  first = Buffer();
  EXPECT_TRUE(__asan_address_is_poisoned(data));
}
#endif

TEST(CpuWorkspace, IsAtMostOneMebibyteAThreadUpToHeadDim256) {
  for (std::int64_t head_dim = 2; head_dim <= 256; head_dim += 2) {
    EXPECT_LE(workspace_bytes(3, head_dim), 3 << 20) << head_dim;
  }
}

struct Variant {
  const char* name;
  bool (*available)();
  const Kernels* kernels;
  std::unique_ptr<Backend> (*create)(const BackendOptions&);
};

constexpr Variant kVariants[] = {
    {"portable", [] { return true; }, &kPortableKernels, create_portable},
#ifdef TIDEKV_CPU_AVX2
    {"avx2", avx2_available, &kAvx2Kernels, create_avx2},
#endif
#ifdef TIDEKV_CPU_AVX512
    {"avx512", avx512_available, &kAvx512Kernels, create_avx512},
    {"avx512_bf16", avx512_bf16_available, &kAvx512Bf16Kernels, create_avx512_bf16},
#endif
};

std::vector<Variant> available_variants() {
  std::vector<Variant> variants;
  for (const Variant& variant : kVariants) {
    if (variant.available()) {
      variants.push_back(variant);
    }
  }
  return variants;
}

class CpuKernels : public testing::TestWithParam<Variant> {
 protected:
  const Kernels& kernels() const { return *GetParam().kernels; }
};

INSTANTIATE_TEST_SUITE_P(On, CpuKernels, testing::ValuesIn(available_variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

TEST_P(CpuKernels, ExponentialIsWithinTwoUnitsInTheLastPlace) {
  EXPECT_EQ(kernels().exponential(0.0F), 1.0F);
  EXPECT_EQ(kernels().exponential(-0.0F), 1.0F);
  EXPECT_EQ(kernels().exponential(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_TRUE(std::isnan(kernels().exponential(std::numeric_limits<float>::quiet_NaN())));
  for (int i = 0; i <= 200000; ++i) {
    const float x = -110.0F + static_cast<float>(i) * (198.0F / 200000.0F);  // up to 88
    const double exact = std::exp(static_cast<double>(x));
    const float nearest = static_cast<float>(exact);
    const double ulp =
        static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity())) -
        static_cast<double>(nearest);
    EXPECT_NEAR(kernels().exponential(x), exact, 2.0 * ulp) << x;
  }
}

TEST_P(CpuKernels, ExponentialsOfATileAreThoseOfSingleNumbers) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-9.0F, 9.0F);
  for (const std::int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 255, 256}) {
    std::array<float, kKeyTile> products{};
    for (float& product : products) {
      product = uniform(random);
    }
    const std::array<float, kKeyTile> before = products;
    const float max = kernels().max_product(products.data(), n) * 0.125F;
    const float sum = kernels().exponentials(products.data(), n, 0.125F, max);
    std::array<float, kKeyTile> weights{};
    kernels().weights(before.data(), n, 0.125F, max, 1.0F, weights.data());
    double exact_sum = 0.0;
    for (std::int64_t i = 0; i < kKeyTile; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float expected = i < n ? kernels().exponential(before[at] * 0.125F - max) : before[at];
      EXPECT_EQ(products[at], expected) << "n " << n << " i " << i;
      EXPECT_EQ(weights[at], i < n ? expected : 0.0F) << "n " << n << " i " << i;
      exact_sum += i < n ? static_cast<double>(expected) : 0.0;
    }
    EXPECT_NEAR(sum, exact_sum, exact_sum * 32 * 0x1p-24);  // at most 31 additions a lane and tree
  }
}

TEST_P(CpuKernels, WidensEveryHalfAndBrainFloatExactly) {
  std::vector<std::uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  std::vector<float> wide(bits.size());
  const auto n = static_cast<std::int64_t>(bits.size());
  const auto same = [](float a, float b) {  // NaN payloads may differ
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
  };
  kernels().widen(bits.data(), Element::kBF16, n, wide.data());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    EXPECT_TRUE(same(wide[i], bf16_to_float(bits[i]))) << "bf16 " << i;
  }
  kernels().widen(bits.data(), Element::kF16, n, wide.data());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    EXPECT_TRUE(same(wide[i], f16_to_float(bits[i]))) << "f16 " << i;
  }
}

TEST_P(CpuKernels, NarrowsToTheNearestBrainFloat) {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < (1U << 16); ++i) {  // around every tie, infinities and NaN included
    for (const std::uint32_t low : {0x0000U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>((i << 16) | low));
    }
  }
  std::vector<std::uint16_t> narrow(values.size());
  kernels().narrow(values.data(), static_cast<std::int64_t>(values.size()), Element::kBF16,
                   narrow.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(narrow[i], float_to_bf16(values[i])) << std::bit_cast<std::uint32_t>(values[i]);
  }
}

// The table that must have pairs, where it can run.
const Kernels* tables_with_pairs() {
#ifdef TIDEKV_CPU_AVX512
  return &kAvx512Bf16Kernels;
#else
  return nullptr;
#endif
}

// A page that may be read, with one behind it that may not.
class EndOfMemory {
 public:
  EndOfMemory() {
    const auto page = static_cast<std::size_t>(getpagesize());
    void* pages =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    base_ = static_cast<std::byte*>(pages);
    end_ = base_ + page;
    EXPECT_EQ(mprotect(end_, page, PROT_NONE), 0);
  }
  EndOfMemory(const EndOfMemory&) = delete;
  EndOfMemory& operator=(const EndOfMemory&) = delete;
  ~EndOfMemory() { munmap(base_, 2 * static_cast<std::size_t>(getpagesize())); }

  // The last `bytes` before the page that may not be read.
  std::byte* last(std::int64_t bytes) const { return end_ - bytes; }

 private:
  std::byte* base_ = nullptr;
  std::byte* end_ = nullptr;
};

TEST_P(CpuKernels, PackingReadsNothingPastTheEndOfAMatrix) {
  const EndOfMemory memory;
  std::vector<float> panel(static_cast<std::size_t>(kPanelDepth * kPanelCols));
  for (const Element type : {Element::kF32, Element::kF16, Element::kBF16}) {
    const std::int64_t bytes = type == Element::kF32 ? 4 : 2;
    for (const std::int64_t rows : {1, 7, 9, 15, 16, 17, 31}) {
      for (const std::int64_t cols : {1, 7, 9, 15, 16, 17, 31}) {
        const std::byte* matrix = memory.last(rows * cols * bytes);
        std::fill(panel.begin(), panel.end(), -1.0F);
        kernels().pack_columns(matrix, type, cols, rows, cols, panel.data());
        EXPECT_EQ(std::count(panel.begin(), panel.end(), 0.0F), cols * kPanelCols);
        std::fill(panel.begin(), panel.end(), -1.0F);
        kernels().pack_rows(matrix, type, cols, rows, cols, panel.data());
        EXPECT_EQ(std::count(panel.begin(), panel.end(), 0.0F), rows * kPanelCols);
        kernels().widen(matrix, type, rows * cols, panel.data());
      }
    }
  }
}

// Masked vector loads and stores are not seen by sanitizers; a page that may not be touched sees
// all of them.
TEST_P(CpuKernels, ProductsTouchNothingPastTheEndsOfTheirOperands) {
  const EndOfMemory left;
  const EndOfMemory right;
  const EndOfMemory out;
  const auto last_floats = [](const EndOfMemory& memory, std::int64_t count) {
    return reinterpret_cast<float*>(memory.last(count * 4));
  };
  for (const std::int64_t rows : {1, 2, 3, 4, 7, 8}) {
    for (const std::int64_t depth : {1, 2, 7, 9, 15, 16, 17, 31}) {
      const float* panel = last_floats(right, depth * kPanelCols);
      std::vector<float> a(static_cast<std::size_t>(rows * kRowStride), 1.0F);
      kernels().multiply(a.data(), panel, rows, depth, Start::kZero,
                         last_floats(out, rows * kPanelCols), kPanelCols);
      for (const Element type : {Element::kF32, Element::kF16, Element::kBF16}) {
        const std::int64_t bytes = type == Element::kF32 ? 4 : 2;
        const ElementRows matrix{left.last(rows * depth * bytes), type, depth, rows};
        for (const std::int64_t count : {1, 2, 3, 4, 5}) {
          const FloatRows factors{last_floats(right, count * depth), depth, count};
          const FloatRows sums{last_floats(out, count * rows), rows, count};
          kernels().dots(matrix, depth, factors, Start::kAdd, sums);
          const FloatRows row_factors{last_floats(right, count * rows), rows, count};
          const FloatRows columns{last_floats(out, count * depth), depth, count};
          kernels().add_rows(matrix, depth, row_factors, columns);
        }
      }
    }
  }
}

// Queries that share keys are summed side by side, each as alone.
TEST_P(CpuKernels, SumsDependOnTheirOwnFactorsOnly) {
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kDepth = 75;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> matrix(kRows * kDepth);
  std::vector<float> factors(8 * kDepth);
  for (std::vector<float>* values : {&matrix, &factors}) {
    std::generate(values->begin(), values->end(), [&] { return normal(random); });
  }
  const ElementRows rows{matrix.data(), Element::kF32, kDepth, kRows};
  for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 8}) {
    std::vector<float> dots(static_cast<std::size_t>(count * kRows), 1.0F);
    std::vector<float> sums(static_cast<std::size_t>(count * kDepth), 1.0F);
    kernels().dots(rows, kDepth, {factors.data(), kDepth, count}, Start::kAdd,
                   {dots.data(), kRows, count});
    kernels().add_rows(rows, kDepth, {factors.data(), kDepth, count}, {sums.data(), kDepth, count});
    for (std::int64_t v = 0; v < count; ++v) {
      std::vector<float> dots_alone(kRows, 1.0F);
      std::vector<float> sums_alone(kDepth, 1.0F);
      const FloatRows own{factors.data() + v * kDepth, 0, 1};
      kernels().dots(rows, kDepth, own, Start::kAdd, {dots_alone.data(), 0, 1});
      kernels().add_rows(rows, kDepth, own, {sums_alone.data(), 0, 1});
      EXPECT_TRUE(begins_with(dots_alone, {dots.begin() + v * kRows, dots.end()}, kRows))
          << v << " of " << count;
      EXPECT_TRUE(begins_with(sums_alone, {sums.begin() + v * kDepth, sums.end()}, kDepth))
          << v << " of " << count;
    }
  }
}

TEST_P(CpuKernels, PackingWritesNothingPastTheEndOfAPanel) {
  const EndOfMemory memory;
  const std::vector<float> matrix(std::size_t{31} * 31);
  for (const std::int64_t depth : {1, 2, 7, 9, 15, 16, 17, 31}) {
    auto* panel = reinterpret_cast<float*>(memory.last(depth * kPanelCols * 4));
    for (const Element type : {Element::kF32, Element::kF16, Element::kBF16}) {
      for (const std::int64_t rows : {1, 16, 17, 31}) {
        kernels().pack_columns(matrix.data(), type, depth, rows, depth, panel);
        kernels().pack_rows(matrix.data(), type, rows, depth, rows, panel);
      }
      kernels().widen(matrix.data(), type, depth, reinterpret_cast<float*>(memory.last(depth * 4)));
    }
  }
}

// A table that multiplies pairs: the products of small integers are exact, so they are those of the
// elements one by one.
TEST_P(CpuKernels, PairsGiveTheProductsOfTheirElements) {
  const Products* pairs = kernels().bf16_pairs;
  if (pairs == nullptr) {
    EXPECT_NE(&kernels(), tables_with_pairs());
    return;
  }
  const EndOfMemory memory;
  for (const std::int64_t depth : {1, 2, 3, 31, 32, 33, 62, 63}) {
    for (const std::int64_t rows : {1, 5, 12}) {
      const auto value = [](std::int64_t row, std::int64_t k) {
        return static_cast<float>((row * 7 + k * 3) % 11 - 5);
      };
      auto* elements = reinterpret_cast<std::uint16_t*>(memory.last(kPanelCols * depth * 2));
      for (std::int64_t i = 0; i < kPanelCols * depth; ++i) {
        elements[i] = float_to_bf16(value(i / depth, i % depth));
      }
      const std::int64_t units = pairs->num_units(depth);
      std::vector<float> panel(static_cast<std::size_t>(units * kPanelCols));
      pairs->pack_columns(elements, Element::kBF16, depth, kPanelCols, depth, panel.data());
      std::vector<float> a(static_cast<std::size_t>(rows * kRowStride));
      for (std::int64_t row = 0; row < rows; ++row) {
        pairs->load_row(elements + row * depth, Element::kBF16, depth, a.data() + row * kRowStride);
      }
      std::vector<float> c(static_cast<std::size_t>(rows * kPanelCols));
      pairs->multiply(a.data(), panel.data(), rows, units, Start::kZero, c.data(), kPanelCols);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = 0; col < kPanelCols; ++col) {
          float exact = 0.0F;
          for (std::int64_t k = 0; k < depth; ++k) {
            exact += value(row, k) * value(col, k);
          }
          EXPECT_EQ(c[static_cast<std::size_t>(row * kPanelCols + col)], exact);
        }
      }
    }
  }
}

TEST_P(CpuKernels, RowsOfActivationsEndWhereTheyEnd) {
  const EndOfMemory memory;
  const EndOfMemory other;
  const float one = 1.0F;
  for (const std::int64_t n : {1, 2, 7, 9, 15, 17, 31}) {
    const std::int64_t bytes = n * 2;
    kernels().rms_norm(memory.last(bytes), Element::kBF16, other.last(bytes), Element::kF16, n,
                       1e-5F, memory.last(bytes));
    kernels().swiglu(memory.last(bytes), other.last(bytes), Element::kBF16, n, memory.last(bytes));
    kernels().narrow_add(&one, 1, Element::kBF16, memory.last(2));
    const auto* floats = reinterpret_cast<const float*>(other.last(n * 4));
    kernels().narrow(floats, n, Element::kBF16, memory.last(bytes));
    kernels().rotate(memory.last(2 * bytes), Element::kBF16, floats, floats, n);
    EXPECT_EQ(kernels().max_product(reinterpret_cast<float*>(other.last(n * 4)), n), 0.0F);
  }
}

// A later token whose value overflowed must not reach earlier rows through 0 * infinity.
TEST_P(CpuKernels, InfiniteValuesOfUnseenKeysLeaveEarlierRowsUnchanged) {
  constexpr std::int64_t kLen = 300;
  constexpr std::int64_t kDim = 16;
  ThreadPool pool(2);
  const auto backend = GetParam().create({.pool = &pool});
  auto workspace = backend->allocate({{Component::kKernelPanels, backend->workspace_bytes(kDim)}});
  ASSERT_TRUE(workspace.ok());
  backend->use_workspace(
      workspace.value().view(DType::kF32, 1, backend->workspace_bytes(kDim) / 4));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::array<std::vector<float>, 3> qkv;
  for (std::vector<float>& matrix : qkv) {
    matrix.resize(kLen * kDim);
    std::generate(matrix.begin(), matrix.end(), [&] { return normal(random); });
  }
  const auto view = [](std::vector<float>& matrix) {
    return DeviceView(reinterpret_cast<std::byte*>(matrix.data()), DType::kF32, kLen, kDim);
  };
  const HeadSpan span{0, kLen, kLen};
  const KvView kv{view(qkv[1]), view(qkv[2]), {&span, 1}};
  std::vector<float> finite = qkv[0];
  backend->attend(view(finite), kv, {});
  std::fill_n(qkv[2].end() - kDim, kDim, std::numeric_limits<float>::infinity());
  std::vector<float> overflowed = qkv[0];
  backend->attend(view(overflowed), kv, {});
  EXPECT_TRUE(begins_with(finite, overflowed, (kLen - 1) * kDim));
  EXPECT_TRUE(std::isinf(overflowed.back()));
}

// 1 + 2^-12 squared is 1 + 2^-11 + 2^-24. Added to -(1 + 2^-11) it leaves 2^-24, unless it was
// rounded first.
TEST_P(CpuKernels, MultiplyAddsRoundOnceInVectorsAndTwiceInPortable) {
  const float a[2] = {1.0F, 1.0F + 0x1p-12F};
  std::vector<float> panel(2 * kPanelCols, 0.0F);
  panel[0] = -(1.0F + 0x1p-11F);
  panel[kPanelCols] = 1.0F + 0x1p-12F;
  float c[kPanelCols];
  kernels().multiply(a, panel.data(), 1, 2, Start::kZero, c, kPanelCols);
  EXPECT_EQ(c[0], &kernels() == &kPortableKernels ? 0.0F : 0x1p-24F);
}

// 2^24 + 1 is not a float and rounds to 2^24; 2^24 + 2 is one.
TEST_P(CpuKernels, AddSumsAProductFromZeroBeforeItIsAdded) {
  const float a[2] = {1.0F, 1.0F};
  const std::vector<float> panel(2 * kPanelCols, 1.0F);
  std::vector<float> added(kPanelCols, 0x1p24F);
  std::vector<float> continued = added;
  kernels().multiply(a, panel.data(), 1, 2, Start::kAdd, added.data(), kPanelCols);
  kernels().multiply(a, panel.data(), 1, 2, Start::kContinue, continued.data(), kPanelCols);
  EXPECT_EQ(added, std::vector<float>(kPanelCols, 0x1p24F + 2.0F));
  EXPECT_EQ(continued, std::vector<float>(kPanelCols, 0x1p24F));
}

}  // namespace
}  // namespace tidekv::cpu
