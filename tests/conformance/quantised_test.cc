// Block-quantised weights: products of both phases and embeddings against the oracle, and what
// their bits may depend on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "conformance/device.h"
#include "oracle/layer_ops.h"
#include "oracle/rounding.h"

namespace tidekv::conformance {
namespace {

constexpr DType kBlockTypes[] = {DType::kQ80, DType::kQ40, DType::kQ41, DType::kQ50,
                                 DType::kQ51, DType::kQ4K, DType::kQ5K, DType::kQ6K};

std::string name_of_phase(Phase phase) { return phase == Phase::kPrefill ? "prefill" : "decode"; }

// The depths a row of this type can have, of those given.
std::vector<std::int64_t> depths_for(DType dtype, const std::vector<std::int64_t>& depths) {
  std::vector<std::int64_t> possible;
  std::copy_if(depths.begin(), depths.end(), std::back_inserter(possible),
               [&](std::int64_t depth) { return depth % traits_of(dtype).block_len == 0; });
  return possible;
}

class QuantisedMatmul : public BackendTest {
 protected:
  // Stored, with a bias, accumulated, and both; in both phases.
  void expect_within_rounding(const HostTensor& a, const HostTensor& w, DType out_type) {
    const HostTensor old = random_.normals(out_type, a.rows(), w.rows(), 3.0);
    const HostTensor bias = random_.normals(DType::kF32, 1, w.rows(), 2.0);
    for (const oracle::Addends& add :
         {oracle::Addends{}, oracle::Addends{.bias = &bias}, oracle::Addends{&old, nullptr},
          oracle::Addends{&old, &bias}}) {
      const Expected wanted = oracle::matmul(a, w, out_type, add);
      for (const Phase phase : kPhases) {
        EXPECT_TRUE(within_bounds(device_.matmul(a, w, out_type, phase, add), wanted))
            << describe(a, w, out_type) << ", " << name_of_phase(phase)
            << (add.bias != nullptr ? ", bias" : "") << (add.old != nullptr ? ", accumulated" : "");
      }
    }
  }

  // Both add chains of at most 128 products (4096 over 32 sums or more, or pieces of 128), then
  // sums of those: at most depth / 128 of them one after another, or a tree of 64 and depth / 4096.
  // The rounding of a product or an element and the spare take up the rest of 16.
  void expect_phases_close(const HostTensor& w) {
    const HostTensor a = random_.normals(DType::kF32, 3, w.cols());
    Expected wanted(a.rows(), w.rows());
    const HostTensor prefill = device_.matmul(a, w, DType::kF32, Phase::kPrefill);
    const double relative =
        2.0 * oracle::rounding_growth(128.0 + 16.0 + static_cast<double>(w.cols()) / 128.0);
    for (std::int64_t row = 0; row < a.rows(); ++row) {
      for (std::int64_t col = 0; col < w.rows(); ++col) {
        double magnitude = 0;
        for (std::int64_t k = 0; k < w.cols(); ++k) {
          magnitude += std::abs(a.at(row, k) * w.at(col, k));
        }
        wanted.set(row, col, prefill.at(row, col), relative * magnitude);
      }
    }
    EXPECT_TRUE(within_bounds(device_.matmul(a, w, DType::kF32, Phase::kDecode), wanted))
        << describe(a, w, DType::kF32);
  }

  static std::string describe(const HostTensor& a, const HostTensor& w, DType out_type) {
    return std::to_string(a.rows()) + " x " + std::to_string(a.cols()) + " x " +
           std::to_string(w.rows()) + ", " + std::string(name_of(a.dtype())) + " x " +
           std::string(name_of(w.dtype())) + " -> " + std::string(name_of(out_type));
  }
};
TIDEKV_ON_EVERY_BACKEND(QuantisedMatmul);

TEST_P(QuantisedMatmul, IsWithinRoundingForAllTypes) {
  for (const DType w_type : kBlockTypes) {
    for (const DType a_type : {DType::kF32, DType::kBF16}) {
      for (const DType out_type : {DType::kF32, a_type}) {
        expect_within_rounding(random_.normals(a_type, 14, 512), random_.blocks(w_type, 67, 512),
                               out_type);
      }
    }
  }
}

TEST_P(QuantisedMatmul, IsWithinRoundingForRowCountsAroundTileEdges) {
  for (const DType w_type : {DType::kQ41, DType::kQ6K}) {
    for (const std::int64_t rows : {1, 2, 11, 12, 13, 33, 129}) {
      expect_within_rounding(random_.normals(DType::kBF16, rows, 256),
                             random_.blocks(w_type, 40, 256), DType::kBF16);
    }
  }
}

TEST_P(QuantisedMatmul, IsWithinRoundingForColumnCountsAroundTileEdges) {
  for (const DType w_type : {DType::kQ80, DType::kQ4K}) {
    for (const std::int64_t cols : {1, 2, 31, 32, 33, 63, 64, 65, 193}) {
      expect_within_rounding(random_.normals(DType::kF32, 3, 256),
                             random_.blocks(w_type, cols, 256), DType::kF32);
    }
  }
}

TEST_P(QuantisedMatmul, IsWithinRoundingForDepthsAroundTileEdges) {
  for (const DType w_type : kBlockTypes) {
    for (const std::int64_t depth :
         depths_for(w_type, {32, 64, 96, 128, 160, 224, 256, 512, 576, 2560, 4096, 4128, 4352})) {
      expect_within_rounding(random_.normals(DType::kBF16, 3, depth),
                             random_.blocks(w_type, 19, depth), DType::kF32);
    }
  }
}

TEST_P(QuantisedMatmul, PhasesDifferByTheRoundingOfTheirSumsOnly) {
  for (const DType w_type : kBlockTypes) {
    for (const std::int64_t depth : {256, 2048, 8448}) {
      expect_phases_close(random_.blocks(w_type, 33, depth));
    }
  }
}

TEST_P(QuantisedMatmul, PhasesOfPlainWeightsDifferByTheRoundingOfTheirSumsOnly) {
  for (const DType w_type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const std::int64_t depth : {5, 600, 8448}) {
      expect_phases_close(random_.normals(w_type, 33, depth));
    }
  }
}

TEST_P(QuantisedMatmul, OfUnitVectorsGivesTheWeightsRoundedOnce) {
  for (const DType w_type : kBlockTypes) {
    const HostTensor w = random_.blocks(w_type, 5, 256);
    HostTensor a(DType::kF32, 256, 256);
    HostTensor wanted(DType::kF32, 256, 5);
    for (std::int64_t k = 0; k < 256; ++k) {
      a.set(k, k, 1.0);
      for (std::int64_t row = 0; row < 5; ++row) {
        wanted.set(k, row, w.at(row, k) + 0.0);  // a sum that begins with 0 is never -0
      }
    }
    for (const Phase phase : kPhases) {
      EXPECT_TRUE(same_bits(device_.matmul(a, w, DType::kF32, phase), wanted))
          << name_of(w_type) << ", " << name_of_phase(phase);
    }
  }
}

TEST_P(QuantisedMatmul, KeepsAnInfinityOrNanInItsOwnRow) {
  for (const DType w_type : {DType::kQ41, DType::kQ5K}) {
    HostTensor a = random_.normals(DType::kF32, 5, 512);
    const HostTensor w = random_.blocks(w_type, 40, 512);
    for (const Phase phase : kPhases) {
      const HostTensor clean = device_.matmul(a, w, DType::kF32, phase);
      HostTensor spoilt = a;
      spoilt.set(2, 5, std::numeric_limits<double>::quiet_NaN());
      const HostTensor got = device_.matmul(spoilt, w, DType::kF32, phase);
      EXPECT_TRUE(same_bits(got.rows_at(0, 2), clean.rows_at(0, 2)));
      EXPECT_TRUE(same_bits(got.rows_at(3, 2), clean.rows_at(3, 2)));
      for (std::int64_t col = 0; col < got.cols(); ++col) {
        EXPECT_TRUE(std::isnan(got.at(2, col)));
      }
    }
  }
}

// --- independence ---

TEST_P(QuantisedMatmul, ARowHasTheSameBitsAloneAndAmongOthers) {
  for (const DType w_type : kBlockTypes) {
    const HostTensor a = random_.normals(DType::kBF16, 37, 512);
    const HostTensor w = random_.blocks(w_type, 45, 512);
    for (const Phase phase : kPhases) {
      const HostTensor whole = device_.matmul(a, w, DType::kBF16, phase);
      for (const std::int64_t piece : {1, 2, 13}) {
        for (std::int64_t first = 0; first < a.rows(); first += piece) {
          const std::int64_t count = std::min(piece, a.rows() - first);
          device_.poison_workspace();
          ASSERT_TRUE(same_bits(device_.matmul(a.rows_at(first, count), w, DType::kBF16, phase),
                                whole.rows_at(first, count)))
              << describe(a, w, DType::kBF16) << ", " << name_of_phase(phase) << ", rows " << first
              << " to " << first + count;
        }
      }
    }
  }
}

TEST_P(QuantisedMatmul, AColumnHasTheSameBitsAloneAndAmongOthers) {
  for (const DType w_type : kBlockTypes) {
    const HostTensor a = random_.normals(DType::kF32, 2, 4352);
    const HostTensor w = random_.blocks(w_type, 70, 4352);
    for (const Phase phase : kPhases) {
      const HostTensor whole = device_.matmul(a, w, DType::kF32, phase);
      for (const std::int64_t col : {0, 31, 32, 63, 64, 69}) {
        const HostTensor alone = device_.matmul(a, w.rows_at(col, 1), DType::kF32, phase);
        EXPECT_EQ(alone.at(0, 0), whole.at(0, col)) << name_of(w_type) << ", column " << col;
        EXPECT_EQ(alone.at(1, 0), whole.at(1, col)) << name_of(w_type) << ", column " << col;
      }
    }
  }
}

TEST_P(QuantisedMatmul, ThreadsChangeNoBit) {
  std::vector<std::unique_ptr<Device>> others;
  for (const int num_threads : {1, 3, 5}) {
    others.push_back(std::make_unique<Device>(*GetParam(), num_threads));
  }
  for (const DType w_type : kBlockTypes) {
    const HostTensor a = random_.normals(DType::kBF16, 3, 1024);
    const HostTensor w = random_.blocks(w_type, 600, 1024);
    for (const Phase phase : kPhases) {
      const HostTensor on_two = device_.matmul(a, w, DType::kF32, phase);
      for (const auto& other : others) {
        EXPECT_TRUE(same_bits(other->matmul(a, w, DType::kF32, phase), on_two))
            << name_of(w_type) << ", " << name_of_phase(phase);
      }
    }
  }
}

// --- embeddings ---

class QuantisedEmbed : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(QuantisedEmbed);

TEST_P(QuantisedEmbed, RowsAreTheTablesRoundedToFloatThenStored) {
  for (const DType table_type : kBlockTypes) {
    for (const DType out_type : {DType::kF32, DType::kBF16}) {
      for (const std::int64_t dim : depths_for(table_type, {32, 96, 576, 1056, 1280, 2304})) {
        const HostTensor table = random_.blocks(table_type, 50, dim);
        HostTensor ids(DType::kI32, 1, 9);
        for (std::int64_t i = 0; i < ids.cols(); ++i) {
          ids.set(0, i, static_cast<double>(i == 0 ? 49 : random_.below(50)));
        }
        EXPECT_TRUE(
            same_bits(device_.embed(table, ids, out_type), oracle::embed(table, ids, out_type)))
            << name_of(table_type) << " to " << name_of(out_type) << ", dim " << dim;
      }
    }
  }
}

}  // namespace
}  // namespace tidekv::conformance
