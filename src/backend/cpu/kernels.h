// The inner loops of the CPU backend, once per instruction set: a table of functions.
//
// The drivers (matmul.cc, attention.cc, ...) cut an operation into tasks and tiles and are compiled
// once; they reach the instruction set only through this table. Plain types only, no function with
// external linkage: an inline one compiled for AVX-512 might be the copy the linker keeps.
//
// One product serves all: C [rows, 32] = A [rows, depth] B [depth, 32], where A has a fixed row
// stride and B is a packed panel, both f32. Every element is one chain of multiply-adds over
// ascending depth, so its bits depend on its row of A and its column of B only.
#pragma once

#include <cstdint>

namespace tidekv::cpu {

enum class Element : std::uint8_t { kF32, kF16, kBF16 };

// Block-quantised types (tensor/dtype.h): blocks of 32 elements, or of 256 for kQ4K, kQ5K, kQ6K.
enum class BlockType : std::uint8_t { kQ80, kQ40, kQ41, kQ50, kQ51, kQ4K, kQ5K, kQ6K };

// Rows of a block-quantised matrix.
struct BlockRows {
  const void* data = nullptr;
  BlockType type = BlockType::kQ80;
  std::int64_t stride_bytes = 0;  // between rows
  std::int64_t rows = 0;
};

// A row of codes of 2 or 4 bits, the lowest of a byte first, and scale and minimum of every
// `group_len` of them. It fills whole words of 4 bytes.
struct CodeRow {
  const void* codes = nullptr;
  std::int64_t bits = 0;
  const float* scales = nullptr;
  const float* minima = nullptr;
  std::int64_t group_len = 0;
};

// Rows of a matrix of plain elements.
struct ElementRows {
  const void* data = nullptr;
  Element type = Element::kF32;
  std::int64_t stride = 0;  // elements between rows
  std::int64_t rows = 0;
};

// Rows of f32 numbers to compute with or to write.
struct FloatRows {
  float* data = nullptr;
  std::int64_t stride = 0;  // floats between rows
  std::int64_t rows = 0;

  float* row(std::int64_t r) const { return data + r * stride; }
};

// What a product starts from.
enum class Start : std::uint8_t {
  kZero,      // C = A B
  kContinue,  // C += A B, going on with the chain
  kAdd,       // C += A B, a chain from zero that is then added
};

inline constexpr std::int64_t kStripRows = 12;    // most rows of A in one product
inline constexpr std::int64_t kPanelCols = 32;    // columns of a panel
inline constexpr std::int64_t kPanelDepth = 256;  // most depth of a panel
// Floats from one row of A to the next. Not a power of two: rows spread over the cache's sets.
inline constexpr std::int64_t kRowStride = kPanelDepth + 16;
// Most depth of a product straight from stored rows: one chain is a 32nd of it, or shorter.
inline constexpr std::int64_t kDotDepth = 4096;
// Keys of one step of the running softmax, anchored at slot 0. The probabilities of a tile are the
// A of the product with the values, so a tile is as long as a panel is deep.
inline constexpr std::int64_t kKeyTile = kPanelDepth;

// How two matrices become operands of a product, and the product. A unit is what one 32-bit number
// holds: an f32 element, or a pair of BF16 elements for processors that multiply pairs.
struct Products {
  std::int64_t unit_len = 1;  // elements of a unit
  // A row of n elements as units; the last one is filled up with 0.
  void (*load_row)(const void* from, Element type, std::int64_t n, float* to);
  // panel[u * 32 + r] = unit u of row r (pack_columns below).
  void (*pack_columns)(const void* from, Element type, std::int64_t stride, std::int64_t rows,
                       std::int64_t depth, float* panel);
  // `depth` counts units (multiply below).
  void (*multiply)(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
                   Start start, float* c, std::int64_t c_stride);

  std::int64_t num_units(std::int64_t depth) const { return (depth + unit_len - 1) / unit_len; }
};

struct Kernels {
  // --- element types ---

  // to[i] = from[i] as f32; exact.
  void (*widen)(const void* from, Element type, std::int64_t n, float* to);
  // to[i] = from[i] rounded to nearest even.
  void (*narrow)(const float* from, std::int64_t n, Element type, void* to);
  // to[i] = from[i] + to[i], rounded once.
  void (*narrow_add)(const float* from, std::int64_t n, Element type, void* to);

  // --- products ---

  // panel[c * 32 + r] = element c of row r, for c < depth. Lanes r >= rows become 0. `stride` is
  // the number of elements between rows; rows <= 32.
  void (*pack_columns)(const void* from, Element type, std::int64_t stride, std::int64_t rows,
                       std::int64_t depth, float* panel);
  // panel[r * 32 + c] = element c of row r, for r < depth. Lanes c >= cols become 0; cols <= 32.
  void (*pack_rows)(const void* from, Element type, std::int64_t stride, std::int64_t depth,
                    std::int64_t cols, float* panel);
  // c[rows, 32] = (or +=) a[rows, depth] panel[depth, 32]. a has row stride kRowStride. kZero, then
  // kContinue, then adding gives the bits of kAdd.
  void (*multiply)(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
                   Start start, float* c, std::int64_t c_stride);

  // For two matrices of BF16; null where pairs are not multiplied, or no faster than as f32. Two
  // products and their sums are rounded one after the other, subnormal numbers count as 0.
  const Products* bf16_pairs = nullptr;

  // --- products with rows as they are stored, for a few rows of activations ---

  // sums.row(v)[r] = (or +=) the first n elements of row r times a.row(v), n <= kDotDepth. Start is
  // kZero or kAdd. A sum's bits depend on its row and its row of `a` only.
  void (*dots)(const ElementRows& rows, std::int64_t n, const FloatRows& a, Start start,
               const FloatRows& sums);
  // sums.row(v)[i] += factors.row(v)[r] * element i of row r, over all rows, for i < n. A sum's
  // bits depend on its column and its row of factors only.
  void (*add_rows)(const ElementRows& rows, std::int64_t n, const FloatRows& factors,
                   const FloatRows& sums);

  // --- block-quantised rows ---

  // to[i] = element first + i of `row`, for i < n: scale * number, plus or minus the minimum, each
  // rounded to f32 (the product is exact). `first` and `n` are multiples of 32, for blocks of 256
  // of 128.
  void (*expand)(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to);
  // As dots for one row, with elements as expand gives them; whole blocks.
  void (*block_dots)(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums);

  // --- rows of codes ---

  // to[i] = code i * scale + minimum of its group, for i < n; each rounded to f32.
  void (*expand_codes)(const CodeRow& row, std::int64_t n, float* to);

  // --- softmax; s holds query-key products, a logit is s * scale, n is at least 1 ---

  // The largest s.
  float (*max_product)(const float* s, std::int64_t n);
  // s[i] = exp(s[i] * scale - max); returns their sum, n <= kKeyTile.
  float (*exponentials)(float* s, std::int64_t n, float scale, float max);
  // weights[i] = exp(s[i] * scale - max) / normaliser.
  void (*weights)(const float* s, std::int64_t n, float scale, float max, float normaliser,
                  float* weights);
  // The same exponential of one number.
  float (*exponential)(float x);
  // x[i] *= factor; x[i] /= divisor.
  void (*multiply_by)(float* x, std::int64_t n, float factor);
  void (*divide_by)(float* x, std::int64_t n, float divisor);

  // --- rows of activations; `type` is kF32 or kBF16 ---

  // out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i].
  void (*rms_norm)(const void* x, Element type, const void* weight, Element weight_type,
                   std::int64_t n, float eps, void* out);
  // Rotates pairs (i, i + half) of one head in place by cos[i], sin[i].
  void (*rotate)(void* x, Element type, const float* cos, const float* sin, std::int64_t half);
  // out[i] = gate[i] / (1 + exp(-gate[i])) * up[i].
  void (*swiglu)(const void* gate, const void* up, Element type, std::int64_t n, void* out);
};

extern const Kernels kPortableKernels;
#ifdef TIDEKV_CPU_AVX2
extern const Kernels kAvx2Kernels;
#endif
#ifdef TIDEKV_CPU_AVX512
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512Bf16Kernels;  // with bf16_pairs
#endif

}  // namespace tidekv::cpu
