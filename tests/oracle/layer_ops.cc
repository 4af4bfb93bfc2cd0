#include "oracle/layer_ops.h"

#include <array>
#include <cmath>
#include <utility>

#include "oracle/rounding.h"

namespace tidekv::oracle {

HostTensor embed(const HostTensor& table, const HostTensor& ids, DType out_type) {
  HostTensor out(out_type, ids.cols(), table.cols());
  for (std::int64_t row = 0; row < ids.cols(); ++row) {
    const auto id = static_cast<std::int64_t>(ids.at(0, row));
    for (std::int64_t col = 0; col < table.cols(); ++col) {
      out.set(row, col, table.at(id, col));
    }
  }
  return out;
}

Expected exactly(const HostTensor& x) {
  Expected out(x.rows(), x.cols());
  out.value = x.values();
  return out;
}

// Squares and their sum cost n roundings, the division by n and the sum with eps two; the root
// halves their effect. The root, the quotient and two products round once each, the store once.
// Errors of x move the root mean square by at most their own.
Expected rms_norm(const Expected& x, DType dtype, const HostTensor& weight, double eps) {
  const auto n = static_cast<double>(x.cols);
  const double relative = rounding_growth(0.5 * (n + 2.0) + 4.0) + storage_rounding(dtype);
  Expected out(x.rows, x.cols);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    double squares = 0;
    double squared_errors = 0;
    for (std::int64_t col = 0; col < x.cols; ++col) {
      const std::size_t at = x.index(row, col);
      squares += x.value[at] * x.value[at];
      squared_errors += x.bound[at] * x.bound[at];
    }
    const double root = std::sqrt(squares / n + eps);
    const double root_error = std::sqrt(squared_errors / n);
    for (std::int64_t col = 0; col < x.cols; ++col) {
      const std::size_t at = x.index(row, col);
      const double exact = x.value[at] / root * weight.at(0, col);
      const double moved = (x.bound[at] + std::abs(x.value[at]) * root_error / root) /
                           (root - root_error) * std::abs(weight.at(0, col));
      out.set(row, col, exact, moved + relative * (std::abs(exact) + moved) + kFloatTiny);
    }
  }
  return out;
}

// k products and their sum: rounding_growth(k + 1) of the sum of magnitudes; an element of
// quantised weights rounds once itself. Adding the bias and the old value rounds once more each,
// the store once. Products below the normal range may be flushed one by one.
Expected matmul(const HostTensor& a, const HostTensor& w, DType out_type, const Addends& add) {
  const std::int64_t depth = a.cols();
  const std::vector<double> a_values = a.values();
  const std::vector<double> w_values = w.values();
  const double roundings = static_cast<double>(depth) + (is_quantised(w.dtype()) ? 2.0 : 1.0);
  Expected out(a.rows(), w.rows());
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    for (std::int64_t col = 0; col < w.rows(); ++col) {
      const double* left = a_values.data() + row * depth;
      const double* right = w_values.data() + col * depth;
      double exact = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        exact += left[k] * right[k];
        magnitude += std::abs(left[k] * right[k]);
      }
      double bound = rounding_growth(roundings) * magnitude + roundings * kFloatTiny;
      for (const auto& [addend, from] : {std::pair{add.bias, std::int64_t{0}}, {add.old, row}}) {
        if (addend != nullptr) {
          exact += addend->at(from, col);
          bound += kFloatRounding * (std::abs(exact) + bound);
        }
      }
      bound += storage_rounding(out_type) * (std::abs(exact) + bound);
      out.set(row, col, exact, bound);
    }
  }
  return out;
}

Expected rope_angles(const HostTensor& inverse_freq, Position first, std::int64_t rows) {
  const std::int64_t half = inverse_freq.cols();
  Expected out(rows, 2 * half);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto position = static_cast<float>(index_of(first) + row);
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = position * static_cast<float>(inverse_freq.at(0, i));
      out.set(row, i, std::cos(static_cast<double>(angle)), kTrigRounding);
      out.set(row, half + i, std::sin(static_cast<double>(angle)), kTrigRounding);
    }
  }
  return out;
}

// Two products and their sum: two roundings of the magnitudes; the store rounds once.
Expected rope(const Expected& x, DType dtype, const HostTensor& angles, RopePairs pairs) {
  const std::int64_t half = angles.cols() / 2;
  Expected out(x.rows, x.cols);
  // left * a + right * b, of two elements of x.
  const auto set = [&](std::int64_t row, std::int64_t col, std::array<std::size_t, 2> at, double a,
                       double b) {
    const double left = x.value[at[0]] * a;
    const double right = x.value[at[1]] * b;
    const double moved = x.bound[at[0]] * std::abs(a) + x.bound[at[1]] * std::abs(b);
    const double bound =
        moved + rounding_growth(2) * (std::abs(left) + std::abs(right) + moved) + 2 * kFloatTiny;
    out.set(row, col, left + right,
            bound + storage_rounding(dtype) * (std::abs(left + right) + bound));
  };
  const bool adjacent = pairs == RopePairs::kAdjacent;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t head = 0; head < x.cols; head += 2 * half) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double cos = angles.at(row, i);
        const double sin = angles.at(row, half + i);
        const std::array<std::size_t, 2> at = {
            x.index(row, head + (adjacent ? 2 * i : i)),
            x.index(row, head + (adjacent ? 2 * i + 1 : half + i))};
        set(row, head + i, at, cos, -sin);
        set(row, head + half + i, at, sin, cos);
      }
    }
  }
  return out;
}

// The exponential, the sum with 1, the quotient and the product: kExpRounding and three roundings,
// the store one. Where exp(-gate) leaves the float range a kernel may stop at 2^126 or so, which
// leaves |gate| * 2^-126 of a result that is exactly still smaller. No slope of silu is above 1.1.
Expected swiglu(const Expected& gate, const Expected& up, DType dtype) {
  const double relative = kExpRounding + rounding_growth(3) + storage_rounding(dtype) + 0x1p-40;
  Expected out(gate.rows, gate.cols);
  for (std::size_t i = 0; i < out.value.size(); ++i) {
    const double silu = gate.value[i] / (1.0 + std::exp(-gate.value[i]));
    const double largest_up = std::abs(up.value[i]) + up.bound[i];
    const double moved = std::abs(silu) * up.bound[i] + 1.1 * gate.bound[i] * largest_up;
    const double tiny = (std::abs(gate.value[i]) + gate.bound[i]) * largest_up + 1.0;
    out.value[i] = silu * up.value[i];
    out.bound[i] = moved + relative * (std::abs(out.value[i]) + moved) + tiny * 2 * kFloatTiny;
  }
  return out;
}

Expected product(const HostTensor& a, const Linear<HostTensor>& linear) {
  const HostTensor* bias = linear.bias.rows() > 0 ? &linear.bias : nullptr;
  return matmul(a, linear.weight, a.dtype(), {.bias = bias});
}

}  // namespace tidekv::oracle
