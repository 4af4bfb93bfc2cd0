// Matrix products against the oracle.
#include <gtest/gtest.h>

#include "conformance/device.h"
#include "oracle/layer_ops.h"

namespace tidekv::conformance {
namespace {

class Matmul : public BackendTest {
 protected:
  void expect_within_rounding(const HostTensor& a, const HostTensor& w, DType out_type) {
    for (const Phase phase : kPhases) {
      EXPECT_TRUE(
          within_bounds(device_.matmul(a, w, out_type, phase), oracle::matmul(a, w, out_type)))
          << describe(a, w, out_type) << ", phase " << static_cast<int>(phase);
    }
    const HostTensor old = random_.normals(out_type, a.rows(), w.rows(), 3.0);
    EXPECT_TRUE(within_bounds(device_.matmul_onto(a, w, old),
                              oracle::matmul(a, w, out_type, {.old = &old})))
        << describe(a, w, out_type) << " accumulated";
  }

  static std::string describe(const HostTensor& a, const HostTensor& w, DType out_type) {
    return std::to_string(a.rows()) + " x " + std::to_string(a.cols()) + " x " +
           std::to_string(w.rows()) + ", " + std::string(name_of(a.dtype())) + " x " +
           std::string(name_of(w.dtype())) + " -> " + std::string(name_of(out_type));
  }
};
TIDEKV_ON_EVERY_BACKEND(Matmul);

TEST_P(Matmul, IsWithinRoundingForAllTypes) {
  for (const DType a_type : {DType::kF32, DType::kBF16}) {
    for (const DType w_type : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const DType out_type : {DType::kF32, a_type}) {
        const HostTensor a = random_.normals(a_type, 29, 290);
        const HostTensor w = random_.normals(w_type, 67, 290, 0.1);
        expect_within_rounding(a, w, out_type);
      }
    }
  }
}

TEST_P(Matmul, IsWithinRoundingForRowCountsAroundTileEdges) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 11, 12, 13, 23, 24, 25, 31, 32, 33, 64, 129}) {
    expect_within_rounding(random_.normals(DType::kBF16, rows, 70),
                           random_.normals(DType::kBF16, 40, 70), DType::kBF16);
  }
}

TEST_P(Matmul, IsWithinRoundingForColumnCountsAroundTileEdges) {
  for (const std::int64_t cols : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129}) {
    expect_within_rounding(random_.normals(DType::kF32, 13, 70),
                           random_.normals(DType::kBF16, cols, 70), DType::kF32);
  }
}

TEST_P(Matmul, IsWithinRoundingForDepthsAroundTileEdges) {
  for (const std::int64_t depth :
       {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1000, 1537}) {
    expect_within_rounding(random_.normals(DType::kBF16, 14, depth),
                           random_.normals(DType::kF16, 33, depth), DType::kF32);
  }
}

TEST_P(Matmul, IsWithinRoundingWithOutliersThatCancel) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    HostTensor a = random_.normals(dtype, 5, 300);
    HostTensor w = random_.normals(dtype, 35, 300);
    for (std::int64_t row = 0; row < w.rows(); ++row) {
      w.set(row, 7, 4096.0);
      w.set(row, 290, -4096.0);
    }
    for (std::int64_t row = 0; row < a.rows(); ++row) {
      a.set(row, 7, 512.0);
      a.set(row, 290, 512.0);
    }
    expect_within_rounding(a, w, dtype);
  }
}

TEST_P(Matmul, AddsABiasBeforeTheOldValue) {
  for (const DType bias_type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType out_type : {DType::kF32, DType::kBF16}) {
      for (const std::int64_t cols : {1, 15, 33, 193, 400}) {
        const HostTensor a = random_.normals(DType::kBF16, 14, 70);
        const HostTensor w = random_.normals(DType::kBF16, cols, 70);
        const HostTensor bias = random_.normals(bias_type, 1, cols, 20.0);
        const HostTensor old = random_.normals(out_type, 14, cols, 3.0);
        for (const oracle::Addends& add :
             {oracle::Addends{.bias = &bias}, oracle::Addends{.old = &old, .bias = &bias}}) {
          for (const Phase phase : kPhases) {
            EXPECT_TRUE(within_bounds(device_.matmul(a, w, out_type, phase, add),
                                      oracle::matmul(a, w, out_type, add)))
                << describe(a, w, out_type) << ", bias " << name_of(bias_type);
          }
        }
      }
    }
  }
}

TEST_P(Matmul, ABiasOfZerosChangesNothing) {
  const HostTensor a = random_.normals(DType::kBF16, 5, 300);
  const HostTensor w = random_.normals(DType::kBF16, 37, 300);
  const HostTensor zeros(DType::kBF16, 1, 37);
  EXPECT_TRUE(same_bits(device_.matmul(a, w, DType::kBF16, Phase::kPrefill, {.bias = &zeros}),
                        device_.matmul(a, w, DType::kBF16)));
}

TEST_P(Matmul, KeepsAnInfinityOrNanInItsOwnRow) {
  HostTensor a = random_.normals(DType::kF32, 30, 64);
  const HostTensor w = random_.uniforms(DType::kBF16, 40, 64, 0.5, 1.0);
  const HostTensor clean = device_.matmul(a, w, DType::kF32);
  a.set(13, 5, std::numeric_limits<double>::infinity());
  a.set(14, 6, std::numeric_limits<double>::quiet_NaN());
  const HostTensor got = device_.matmul(a, w, DType::kF32);
  EXPECT_TRUE(same_bits(got.rows_at(0, 13), clean.rows_at(0, 13)));
  EXPECT_TRUE(same_bits(got.rows_at(15, 15), clean.rows_at(15, 15)));
  for (std::int64_t col = 0; col < got.cols(); ++col) {
    EXPECT_EQ(got.at(13, col), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(got.at(14, col)));
  }
}

TEST_P(Matmul, WritesNothingBesideItsOutput) {
  const HostTensor a = random_.normals(DType::kBF16, 11, 45);
  const HostTensor w = random_.normals(DType::kBF16, 21, 45);
  const HostTensor frame = random_.normals(DType::kBF16, 15, 21);
  const DeviceTensor out = device_.put(frame);
  backend().matmul(device_.put(a).view, device_.put(w).view, out.view.rows_at(2, 11), {});
  HostTensor wanted = frame;
  wanted.put_rows(2, device_.matmul(a, w, DType::kBF16));
  EXPECT_TRUE(same_bits(device_.get(out.view), wanted));
}

TEST_P(Matmul, AccumulatingOntoZeroEqualsStoring) {
  for (const DType out_type : {DType::kF32, DType::kBF16}) {
    const HostTensor a = random_.normals(DType::kBF16, 17, 300);
    const HostTensor w = random_.normals(DType::kBF16, 37, 300);
    EXPECT_TRUE(same_bits(device_.matmul_onto(a, w, HostTensor(out_type, 17, 37)),
                          device_.matmul(a, w, out_type)));
  }
}

}  // namespace
}  // namespace tidekv::conformance
