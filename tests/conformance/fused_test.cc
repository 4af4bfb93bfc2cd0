// Operations that do the work of several at once: against the oracle, and bit for bit what those
// several give one after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "conformance/device.h"
#include "conformance/projected_heads.h"
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
    const Expected wanted =
        oracle::swiglu(oracle::product(on.a, on.gate), oracle::product(on.a, on.up), on.a.dtype());
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

class ProjectHeads : public BackendTest {
 protected:
  struct Shape {
    std::int64_t depth = 290;
    std::int64_t head_dim = 64;
    std::int64_t num_q_heads = 6;
    std::int64_t num_kv_heads = 2;
  };
  Linear<HostTensor> weights(std::int64_t cols, std::int64_t depth, DType dtype) {
    return {is_quantised(dtype) ? random_.blocks(dtype, cols, depth)
                                : random_.normals(dtype, cols, depth)};
  }

  // Without biases and norms.
  HostProjection projection(std::int64_t rows, const Shape& shape, DType dtype) {
    const std::int64_t kv_dim = shape.num_kv_heads * shape.head_dim;
    HostProjection made;
    made.q = weights(shape.num_q_heads * shape.head_dim, shape.depth, dtype);
    made.k = weights(kv_dim, shape.depth, dtype);
    made.v = weights(kv_dim, shape.depth, dtype);
    made.angles = HostTensor(DType::kF32, rows, shape.head_dim);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < shape.head_dim / 2; ++i) {
        const double angle = random_.uniform(-3.2, 3.2);
        made.angles.set(row, i, std::cos(angle));
        made.angles.set(row, shape.head_dim / 2 + i, std::sin(angle));
      }
    }
    return made;
  }

  void add_biases(HostProjection& made, DType dtype) {
    for (Linear<HostTensor>* linear : {&made.q, &made.k, &made.v}) {
      linear->bias = random_.normals(dtype, 1, linear->weight.rows(), 30.0);
    }
  }

  void add_norms(HostProjection& made, DType dtype) {
    made.q_norm = random_.normals(dtype, 1, made.head_dim());
    made.k_norm = random_.normals(dtype, 1, made.head_dim());
  }

  void expect_within_rounding(const HostTensor& a, const HostProjection& made) {
    const Heads<Expected> wanted = expected_heads(a, made);
    for (const Phase phase : kPhases) {
      const Heads<HostTensor> got = project_heads(device_, a, made, phase);
      EXPECT_TRUE(within_bounds(got.q, wanted.q)) << "queries, " << describe(a, made, phase);
      EXPECT_TRUE(within_bounds(got.k, wanted.k)) << "keys, " << describe(a, made, phase);
      EXPECT_TRUE(within_bounds(got.v, wanted.v)) << "values, " << describe(a, made, phase);
    }
  }

  // What the operations give one after the other, each on what the one before stored.
  HostTensor one_by_one(const HostTensor& a, const Linear<HostTensor>& linear,
                        const HostTensor& norm, const HostProjection& made, Phase phase) {
    const HostTensor* bias = linear.bias.rows() > 0 ? &linear.bias : nullptr;
    HostTensor heads = device_.matmul(a, linear.weight, a.dtype(), phase, {.bias = bias});
    if (norm.rows() > 0) {
      const std::int64_t num_heads = heads.cols() / made.head_dim();
      const DeviceTensor on_device = device_.put(heads);
      const DeviceView rows = on_device.view.reshaped(a.rows() * num_heads, made.head_dim());
      const DeviceTensor weight = device_.put(norm);
      backend().rms_norm(rows, weight.view, made.eps, rows);
      heads = device_.get(on_device.view);
    }
    return rotated(device_, heads, made.angles, made.pairs);
  }

  void expect_bits_one_by_one(const HostTensor& a, const HostProjection& made) {
    for (const Phase phase : kPhases) {
      const HostTensor q = one_by_one(a, made.q, made.q_norm, made, phase);
      const HostTensor k = one_by_one(a, made.k, made.k_norm, made, phase);
      const HostTensor* bias = made.v.bias.rows() > 0 ? &made.v.bias : nullptr;
      const HostTensor v = device_.matmul(a, made.v.weight, a.dtype(), phase, {.bias = bias});
      device_.poison_workspace();
      const Heads<HostTensor> got = project_heads(device_, a, made, phase);
      EXPECT_TRUE(same_bits(got.q, q)) << "queries, " << describe(a, made, phase);
      EXPECT_TRUE(same_bits(got.k, k)) << "keys, " << describe(a, made, phase);
      EXPECT_TRUE(same_bits(got.v, v)) << "values, " << describe(a, made, phase);
    }
  }

  static std::string describe(const HostTensor& a, const HostProjection& made, Phase phase) {
    return conformance::describe(a, made.q.weight) + ", head length " +
           std::to_string(made.head_dim()) + (made.q.bias.rows() > 0 ? ", biases" : "") +
           (made.q_norm.rows() > 0 ? ", norms" : "") +
           (made.pairs == RopePairs::kAdjacent ? ", adjacent" : "") + ", phase " +
           std::to_string(static_cast<int>(phase));
  }
};
TIDEKV_ON_EVERY_BACKEND(ProjectHeads);

TEST_P(ProjectHeads, IsWithinRoundingForAllTypes) {
  for (const DType a_type : kActivationTypes) {
    for (const DType w_type : kWeightTypes) {
      HostProjection made = projection(14, {}, w_type);
      const HostTensor a = random_.normals(a_type, 14, 290);
      expect_within_rounding(a, made);
      add_biases(made, w_type);
      add_norms(made, w_type);
      made.pairs = RopePairs::kAdjacent;
      expect_within_rounding(a, made);
    }
  }
}

TEST_P(ProjectHeads, IsWithinRoundingForQuantisedWeights) {
  for (const DType dtype : kBlockTypes) {
    HostProjection made = projection(5, {.depth = 256, .head_dim = 48}, dtype);
    const HostTensor a = random_.normals(DType::kBF16, 5, 256);
    expect_within_rounding(a, made);
    add_norms(made, DType::kF32);
    expect_within_rounding(a, made);
  }
}

TEST_P(ProjectHeads, IsWithinRoundingForHeadLengthsAroundTileEdges) {
  for (const std::int64_t head_dim : {2, 16, 30, 32, 34, 64, 90, 96, 128, 130, 250, 256}) {
    HostProjection made = projection(13, {.depth = 70, .head_dim = head_dim}, DType::kBF16);
    add_norms(made, DType::kF32);
    expect_within_rounding(random_.normals(DType::kBF16, 13, 70), made);
  }
}

TEST_P(ProjectHeads, IsProductThenNormThenRotationBitForBit) {
  for (const DType a_type : kActivationTypes) {
    for (const std::int64_t head_dim : {64, 90, 128}) {
      for (const std::int64_t rows : {1, 7, 64, 300}) {
        HostProjection made = projection(rows, {.depth = 130, .head_dim = head_dim}, DType::kBF16);
        const HostTensor a = random_.normals(a_type, rows, 130);
        expect_bits_one_by_one(a, made);
        add_norms(made, DType::kBF16);
        made.pairs = RopePairs::kAdjacent;
        expect_bits_one_by_one(a, made);
        add_biases(made, DType::kF32);
        made.pairs = RopePairs::kHalves;
        expect_bits_one_by_one(a, made);
      }
    }
  }
}

TEST_P(ProjectHeads, IsProductThenNormThenRotationBitForBitForQuantisedWeights) {
  for (const DType dtype : kBlockTypes) {
    for (const std::int64_t rows : {1, 7, 64, 300}) {
      HostProjection made =
          projection(rows, {.depth = 256, .num_q_heads = 3, .num_kv_heads = 1}, dtype);
      made.v = weights(64, 256, DType::kBF16);
      add_norms(made, DType::kF32);
      expect_bits_one_by_one(random_.normals(DType::kBF16, rows, 256), made);
    }
  }
}

// More heads than a block has columns for.
TEST_P(ProjectHeads, IsTheSameHoweverManyHeadsThereAre) {
  for (const Shape& shape : {Shape{70, 64, 40, 20}, Shape{70, 256, 9, 3}, Shape{70, 8, 150, 75}}) {
    HostProjection made = projection(20, shape, DType::kBF16);
    add_norms(made, DType::kF32);
    expect_bits_one_by_one(random_.normals(DType::kBF16, 20, 70), made);
  }
}

TEST_P(ProjectHeads, QueriesMayBeThoseOfTheNewestRowsAlone) {
  HostProjection made = projection(300, {.depth = 70}, DType::kBF16);
  const HostTensor a = random_.normals(DType::kBF16, 300, 70);
  for (const Phase phase : kPhases) {
    const Heads<HostTensor> all = project_heads(device_, a, made, phase);
    for (const std::int64_t num_queries : {0, 1, 32, 290}) {
      const Heads<HostTensor> some = project_heads(device_, a, made, phase, num_queries);
      EXPECT_TRUE(same_bits(some.q, all.q.rows_at(300 - num_queries, num_queries)))
          << num_queries << " queries";
      EXPECT_TRUE(same_bits(some.k, all.k));
      EXPECT_TRUE(same_bits(some.v, all.v));
    }
  }
}

}  // namespace
}  // namespace tidekv::conformance
