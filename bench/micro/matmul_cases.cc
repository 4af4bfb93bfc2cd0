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

// Blocks of 256 do not divide every depth.
bool is_possible(const Product& product) {
  return product.shape.depth % traits_of(product.weights).block_len == 0;
}

std::unique_ptr<Operation> prepare(Device& device, const Product& product) {
  const auto [depth, cols] = product.shape;
  const Copies copies = product.rows == 1 ? Copies::kBeyondCache : Copies::kOne;
  Operands operands{device.make(product.activations, product.rows, depth),
                    device.make(product.weights, cols, depth, copies),
                    device.make(product.activations, product.rows, cols)};
  const MatmulOptions options{.phase = product.phase};
  return operation(std::move(operands),
                   [backend = &device.backend(), options](const Operands& on, std::int64_t call) {
                     backend->matmul(on.a.at(0), on.w.at(call), on.out.at(0), options);
                   });
}

void add(std::vector<Case>& cases, const Product& product) {
  if (!is_possible(product)) {
    return;
  }
  const auto [depth, cols] = product.shape;
  Cost cost{.flops = 2.0 * static_cast<double>(product.rows * depth * cols)};
  if (product.rows == 1) {  // bound by reading the weights
    cost.bytes = static_cast<double>(cols * row_bytes(product.weights, depth));
  }
  const char* name = product.phase == Phase::kDecode ? "matmul_decode" : "matmul";
  cases.push_back({fmt::format("{}/m{}/{}x{}/{}*{}", name, product.rows, depth, cols,
                               name_of(product.activations), name_of(product.weights)),
                   cost, [product](Device& device) { return prepare(device, product); }});
}

}  // namespace

void add_matmul_cases(std::vector<Case>& cases) {
  for (const DType activations : kActivationTypes) {
    for (const DType weights : kWeightTypes) {
      for (const Shape& shape : kShapes) {
        for (const std::int64_t rows : kRows) {
          add(cases, {shape, rows, activations, weights, Phase::kPrefill});
        }
        add(cases, {shape, 1, activations, weights, Phase::kDecode});
      }
    }
  }
}

}  // namespace tidekv::micro
