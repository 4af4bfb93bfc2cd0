// Operations on rows of activations: embed, rms_norm, rope_angles, swiglu.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

// Elements [col, col + n) of a row of weights.
void widen_piece(const Kernels& kernels, DeviceView w, std::int64_t row, std::int64_t col,
                 std::int64_t n, float* to) {
  if (is_quantised(w.dtype())) {
    kernels.expand(address(w, row), block_type_of(w.dtype()), col, n, to);
  } else {
    kernels.widen(address(w, row, col), element_of(w.dtype()), n, to);
  }
}

}  // namespace

void embed(const Context& context, DeviceView table, DeviceView ids, DeviceView out) {
  const auto* id = reinterpret_cast<const std::int32_t*>(ids.device_ptr());
  const std::int64_t dim = table.cols();
  for_row_pieces(context.pool, out.rows(), dim,
                 [&](std::int64_t first, std::int64_t count, int thread) {
                   for (std::int64_t r = first; r < first + count; ++r) {
                     TIDEKV_DCHECK(id[r] >= 0 && id[r] < table.rows());
                     if (table.dtype() == out.dtype()) {
                       std::memcpy(address(out, r), address(table, id[r]),
                                   static_cast<std::size_t>(dim * size_of(out.dtype())));
                       continue;
                     }
                     constexpr std::int64_t kPiece = 1024;
                     float* wide = context.scratch(thread, kPiece);
                     for (std::int64_t c = 0; c < dim; c += kPiece) {
                       const std::int64_t n = std::min(kPiece, dim - c);
                       widen_piece(context.kernels, table, id[r], c, n, wide);
                       context.kernels.narrow(wide, n, element_of(out.dtype()), address(out, r, c));
                     }
                   }
                 });
}

void rms_norm(const Context& context, DeviceView x, DeviceView weight, float eps, DeviceView out) {
  for_row_pieces(
      context.pool, x.rows(), x.cols(), [&](std::int64_t first, std::int64_t count, int) {
        for (std::int64_t r = first; r < first + count; ++r) {
          context.kernels.rms_norm(address(x, r), element_of(x.dtype()), weight.device_ptr(),
                                   element_of(weight.dtype()), x.cols(), eps, address(out, r));
        }
      });
}

void rope_angles(const Context& context, DeviceView inverse_freq, Position first, DeviceView out) {
  const float* freq = floats(inverse_freq);
  const std::int64_t half = out.cols() / 2;
  // A cosine costs about as much as 16 elements of other operations.
  for_row_pieces(
      context.pool, out.rows(), out.cols() * 16, [&](std::int64_t begin, std::int64_t count, int) {
        for (std::int64_t r = begin; r < begin + count; ++r) {
          const auto position = static_cast<float>(index_of(first) + r);
          float* row = floats(out, r);
          for (std::int64_t i = 0; i < half; ++i) {
            const double angle = position * freq[i];  // rounded to f32 first, as in Transformers
            row[i] = static_cast<float>(std::cos(angle));
            row[half + i] = static_cast<float>(std::sin(angle));
          }
        }
      });
}

void swiglu(const Context& context, DeviceView gate, DeviceView up, DeviceView out) {
  for_row_pieces(
      context.pool, gate.rows(), gate.cols(), [&](std::int64_t first, std::int64_t count, int) {
        context.kernels.swiglu(address(gate, first), address(up, first), element_of(gate.dtype()),
                               count * gate.cols(), address(out, first));
      });
}

}  // namespace tidekv::cpu
