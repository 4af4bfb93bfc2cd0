// Matrix products of prompts (M rows at once) and of generated tokens (one row).
#include <fmt/format.h>

#include <array>

#include "cases.h"

namespace tidekv::micro {
namespace {

struct Shape {
  std::int64_t depth = 0;  // K
  std::int64_t cols = 0;   // N
};

// SmolLM2-135M: up and gate, down, queries and output, keys and values, the output head; then the
// products of Llama-3.1-8B.
constexpr std::array<Shape, 8> kShapes = {{{576, 1536},
                                           {1536, 576},
                                           {576, 576},
                                           {576, 192},
                                           {576, 49152},
                                           {4096, 4096},
                                           {4096, 14336},
                                           {14336, 4096}}};
// Up and gate at once.
constexpr std::array<Shape, 2> kGatedShapes = {{{576, 1536}, {4096, 14336}}};
constexpr std::int64_t kMlpTileLen = 256;  // rows of a prompt inside the MLP at once
constexpr std::array<std::int64_t, 5> kRows = {1, 64, 256, 512, 2048};
constexpr std::array<DType, 10> kWeightTypes = {DType::kBF16, DType::kF32, DType::kQ80, DType::kQ40,
                                                DType::kQ41,  DType::kQ50, DType::kQ51, DType::kQ4K,
                                                DType::kQ5K,  DType::kQ6K};
constexpr std::array<DType, 2> kActivationTypes = {DType::kBF16, DType::kF32};

struct Product {
  Shape shape;
  std::int64_t rows = 0;
  DType activations = DType::kBF16;
  DType weights = DType::kBF16;
  Phase phase = Phase::kPrefill;
};

struct Operands {
  Tensors a;
  Tensors w;
  Tensors out;
};

struct GatedOperands {
  Tensors a;
  Tensors gate;
  Tensors up;
  Tensors out;
};

// One row is bound by reading the weights.
Copies copies_of_weights(const Product& product) {
  return product.rows == 1 ? Copies::kBeyondCache : Copies::kOne;
}

std::unique_ptr<Operation> prepare(Device& device, const Product& product) {
  const auto [depth, cols] = product.shape;
  Operands operands{device.make(product.activations, product.rows, depth),
                    device.make(product.weights, cols, depth, copies_of_weights(product)),
                    device.make(product.activations, product.rows, cols)};
  const MatmulOptions options{.phase = product.phase};
  return operation(std::move(operands),
                   [backend = &device.backend(), options](const Operands& on, std::int64_t call) {
                     backend->matmul(on.a.at(0), on.w.at(call), on.out.at(0), options);
                   });
}

std::unique_ptr<Operation> prepare_gated(Device& device, const Product& product) {
  const auto [depth, cols] = product.shape;
  const Copies copies = copies_of_weights(product);
  GatedOperands operands{device.make(product.activations, product.rows, depth),
                         device.make(product.weights, cols, depth, copies),
                         device.make(product.weights, cols, depth, copies),
                         device.make(product.activations, product.rows, cols)};
  const auto run = [backend = &device.backend(), phase = product.phase](const GatedOperands& on,
                                                                        std::int64_t call) {
    backend->gated_matmul(on.a.at(0), {on.gate.at(call)}, {on.up.at(call)}, on.out.at(0), phase);
  };
  return operation(std::move(operands), run);
}

using Prepare = std::unique_ptr<Operation> (*)(Device&, const Product&);

// Blocks of 256 do not divide every depth: nothing is added then.
void add(std::vector<Case>& cases, const char* name, const Product& product, int num_matrices,
         Prepare prepare_product) {
  const auto [depth, cols] = product.shape;
  if (depth % traits_of(product.weights).block_len != 0) {
    return;
  }
  Cost cost{.flops = 2.0 * num_matrices * static_cast<double>(product.rows * depth * cols)};
  if (product.rows == 1) {
    cost.bytes = num_matrices * static_cast<double>(cols * row_bytes(product.weights, depth));
  }
  cases.push_back({fmt::format("{}{}/m{}/{}x{}/{}*{}", name,
                               product.phase == Phase::kDecode ? "_decode" : "", product.rows,
                               depth, cols, name_of(product.activations), name_of(product.weights)),
                   cost, [product, prepare_product](Device& device) {
                     return prepare_product(device, product);
                   }});
}

}  // namespace

void add_matmul_cases(std::vector<Case>& cases) {
  for (const DType activations : kActivationTypes) {
    for (const DType weights : kWeightTypes) {
      for (const Shape& shape : kShapes) {
        for (const std::int64_t rows : kRows) {
          add(cases, "matmul", {shape, rows, activations, weights, Phase::kPrefill}, 1, prepare);
        }
        add(cases, "matmul", {shape, 1, activations, weights, Phase::kDecode}, 1, prepare);
      }
      for (const Shape& shape : kGatedShapes) {
        for (const Product& product :
             {Product{shape, kMlpTileLen, activations, weights, Phase::kPrefill},
              Product{shape, 1, activations, weights, Phase::kDecode}}) {
          add(cases, "gated_matmul", product, 2, prepare_gated);
        }
      }
    }
  }
}

}  // namespace tidekv::micro
