// Operations that do the work of several at once: against the oracle, and bit for bit what those
// several give one after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "conformance/device.h"
#include "oracle/layer_ops.h"

namespace tidekv::conformance {
namespace {

constexpr DType kActivationTypes[] = {DType::kF32, DType::kBF16};
constexpr DType kWeightTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kBlockTypes[] = {DType::kQ80, DType::kQ40, DType::kQ41, DType::kQ50,
                                 DType::kQ51, DType::kQ4K, DType::kQ5K, DType::kQ6K};

std::string describe(const HostTensor& a, const HostTensor& w) {
  return std::to_string(a.rows()) + " x " + std::to_string(a.cols()) + " x " +
         std::to_string(w.rows()) + ", " + std::string(name_of(a.dtype())) + " x " +
         std::string(name_of(w.dtype()));
}

class GatedMatmul : public BackendTest {
 protected:
  struct Operands {
    HostTensor a;
    Linear<HostTensor> gate;
    Linear<HostTensor> up;
  };

  // Products of variance 9: silu is bent there.
  Operands operands(std::int64_t rows, std::int64_t depth, std::int64_t cols, DType a_type,
                    DType gate_type, DType up_type) {
    const double scale = 3.0 / std::sqrt(static_cast<double>(depth));
    return {random_.normals(a_type, rows, depth),
            {random_.normals(gate_type, cols, depth, scale)},
            {random_.normals(up_type, cols, depth, scale)}};
  }

  // The same with blocks, whose elements are around 1.
  Operands quantised(std::int64_t rows, std::int64_t depth, std::int64_t cols, DType gate_type,
                     DType up_type) {
    return {random_.normals(DType::kBF16, rows, depth, 3.0 / std::sqrt(static_cast<double>(depth))),
            {random_.blocks(gate_type, cols, depth)},
            {random_.blocks(up_type, cols, depth)}};
  }

  void expect_within_rounding(const Operands& on) {
    const Expected wanted = oracle::gated_matmul(on.a, on.gate, on.up);
    for (const Phase phase : kPhases) {
      EXPECT_TRUE(within_bounds(device_.gated_matmul(on.a, on.gate, on.up, phase), wanted))
          << describe(on.a, on.gate.weight) << ", phase " << static_cast<int>(phase);
    }
  }

  void expect_bits_of_separate_operations(const Operands& on) {
    for (const Phase phase : kPhases) {
      const auto product = [&](const Linear<HostTensor>& linear) {
        const HostTensor* bias = linear.bias.rows() > 0 ? &linear.bias : nullptr;
        return device_.matmul(on.a, linear.weight, on.a.dtype(), phase, {.bias = bias});
      };
      const HostTensor wanted = device_.swiglu(product(on.gate), product(on.up));
      device_.poison_workspace();
      EXPECT_TRUE(same_bits(device_.gated_matmul(on.a, on.gate, on.up, phase), wanted))
          << describe(on.a, on.gate.weight) << ", phase " << static_cast<int>(phase);
    }
  }
};
TIDEKV_ON_EVERY_BACKEND(GatedMatmul);

TEST_P(GatedMatmul, IsWithinRoundingForAllTypes) {
  for (const DType a_type : kActivationTypes) {
    for (const DType gate_type : kWeightTypes) {
      for (const DType up_type : kWeightTypes) {
        expect_within_rounding(operands(14, 290, 67, a_type, gate_type, up_type));
      }
    }
  }
}

TEST_P(GatedMatmul, IsWithinRoundingForQuantisedWeights) {
  for (const DType dtype : kBlockTypes) {
    expect_within_rounding(quantised(5, 512, 67, dtype, dtype));
  }
}

TEST_P(GatedMatmul, IsWithinRoundingWithBiases) {
  for (const DType bias_type : kWeightTypes) {
    Operands on = operands(14, 70, 193, DType::kBF16, DType::kBF16, DType::kBF16);
    on.gate.bias = random_.normals(bias_type, 1, 193, 5.0);
    on.up.bias = random_.normals(bias_type, 1, 193, 20.0);
    expect_within_rounding(on);
  }
}

TEST_P(GatedMatmul, IsTwoProductsThenSwigluBitForBit) {
  for (const DType a_type : kActivationTypes) {
    for (const std::int64_t rows : {1, 7, 64, 300}) {
      for (const std::int64_t cols : {1, 90, 129, 400}) {
        expect_bits_of_separate_operations(
            operands(rows, 290, cols, a_type, DType::kBF16, DType::kBF16));
      }
    }
    for (const std::int64_t depth : {1, 31, 128, 129, 4097}) {
      expect_bits_of_separate_operations(operands(13, depth, 33, a_type, DType::kF16, DType::kF32));
    }
  }
}

TEST_P(GatedMatmul, IsTwoProductsThenSwigluBitForBitWithBiases) {
  for (const std::int64_t rows : {1, 64, 300}) {
    Operands on = operands(rows, 70, 193, DType::kBF16, DType::kBF16, DType::kBF16);
    on.gate.bias = random_.normals(DType::kF32, 1, 193, 5.0);
    expect_bits_of_separate_operations(on);
    on.up.bias = random_.normals(DType::kBF16, 1, 193, 20.0);
    expect_bits_of_separate_operations(on);
    on.gate.bias = {};
    expect_bits_of_separate_operations(on);
  }
}

// Also where gate and up are multiplied in two ways: pairs of BF16 and expanded blocks.
TEST_P(GatedMatmul, IsTwoProductsThenSwigluBitForBitForQuantisedWeights) {
  for (const DType dtype : kBlockTypes) {
    for (const std::int64_t rows : {1, 7, 64, 300}) {
      expect_bits_of_separate_operations(quantised(rows, 512, 65, dtype, DType::kQ80));
    }
    Operands mixed = quantised(30, 256, 65, dtype, dtype);
    mixed.up.weight = random_.normals(DType::kBF16, 65, 256);
    expect_bits_of_separate_operations(mixed);
    std::swap(mixed.gate, mixed.up);
    expect_bits_of_separate_operations(mixed);
  }
}

TEST_P(GatedMatmul, WritesNothingBesideItsOutput) {
  const Operands on = operands(11, 45, 21, DType::kBF16, DType::kBF16, DType::kBF16);
  const HostTensor frame = random_.normals(DType::kBF16, 15, 21);
  const DeviceTensor out = device_.put(frame);
  const Linear<DeviceTensor> gate = device_.put(on.gate);
  const Linear<DeviceTensor> up = device_.put(on.up);
  backend().gated_matmul(device_.put(on.a).view, view_of(gate), view_of(up),
                         out.view.rows_at(2, 11), Phase::kPrefill);
  HostTensor wanted = frame;
  wanted.put_rows(2, device_.gated_matmul(on.a, on.gate, on.up));
  EXPECT_TRUE(same_bits(device_.get(out.view), wanted));
}

}  // namespace
}  // namespace tidekv::conformance
