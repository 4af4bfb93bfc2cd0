#include "oracle/layer_ops.h"

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

// Squares and their sum cost n roundings, the division by n and the sum with eps two; the root
// halves their effect. The root, the quotient and two products round once each, the store once.
Expected rms_norm(const HostTensor& x, const HostTensor& weight, double eps) {
  const auto n = static_cast<double>(x.cols());
  const double relative = rounding_growth(0.5 * (n + 2.0) + 4.0) + storage_rounding(x.dtype());
  Expected out(x.rows(), x.cols());
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    double squares = 0;
    for (std::int64_t col = 0; col < x.cols(); ++col) {
      squares += x.at(row, col) * x.at(row, col);
    }
    const double inverse = 1.0 / std::sqrt(squares / n + eps);
    for (std::int64_t col = 0; col < x.cols(); ++col) {
      const double exact = x.at(row, col) * inverse * weight.at(0, col);
      out.set(row, col, exact, relative * std::abs(exact) + kFloatTiny);
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
Expected rope(const HostTensor& x, const HostTensor& angles, RopePairs pairs) {
  const std::int64_t half = angles.cols() / 2;
  Expected out(x.rows(), x.cols());
  const auto set = [&](std::int64_t row, std::int64_t col, double a, double b) {
    const double bound = rounding_growth(2) * (std::abs(a) + std::abs(b));
    out.set(row, col, a + b,
            bound + storage_rounding(x.dtype()) * (std::abs(a + b) + bound) + 2 * kFloatTiny);
  };
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    for (std::int64_t head = 0; head < x.cols(); head += 2 * half) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double cos = angles.at(row, i);
        const double sin = angles.at(row, half + i);
        const bool adjacent = pairs == RopePairs::kAdjacent;
        const double left = x.at(row, head + (adjacent ? 2 * i : i));
        const double right = x.at(row, head + (adjacent ? 2 * i + 1 : half + i));
        set(row, head + i, left * cos, -right * sin);
        set(row, head + half + i, right * cos, left * sin);
      }
    }
  }
  return out;
}

namespace {

double silu(double x) { return x / (1.0 + std::exp(-x)); }

// The exponential, the sum with 1, the quotient and the product: kExpRounding and three roundings,
// the store one.
double swiglu_rounding(DType dtype) {
  return kExpRounding + rounding_growth(3) + storage_rounding(dtype) + 0x1p-40;
}

}  // namespace

// The products' own bounds go through the product of the two; no slope of silu is above 1.1.
Expected gated_matmul(const HostTensor& a, const Linear<HostTensor>& gate,
                      const Linear<HostTensor>& up) {
  const auto product = [&](const Linear<HostTensor>& linear) {
    const HostTensor* bias = linear.bias.rows() > 0 ? &linear.bias : nullptr;
    return matmul(a, linear.weight, a.dtype(), {.bias = bias});
  };
  const Expected gates = product(gate);
  const Expected ups = product(up);
  const double relative = swiglu_rounding(a.dtype());
  Expected out(gates.rows, gates.cols);
  for (std::size_t i = 0; i < out.value.size(); ++i) {
    const double u = std::abs(ups.value[i]) + ups.bound[i];
    const double g = std::abs(gates.value[i]) + gates.bound[i];
    const double activated = silu(gates.value[i]);
    const double moved = std::abs(activated) * ups.bound[i] + 1.1 * gates.bound[i] * u;
    out.value[i] = activated * ups.value[i];
    out.bound[i] =
        moved + relative * (std::abs(out.value[i]) + moved) + (g * u + 1.0) * 2 * kFloatTiny;
  }
  return out;
}

// Where exp(-gate) leaves the float range a kernel may stop at 2^126 or so, which leaves
// |gate| * 2^-126 of a result that is exactly still smaller.
Expected swiglu(const HostTensor& gate, const HostTensor& up) {
  const double relative = swiglu_rounding(gate.dtype());
  Expected out(gate.rows(), gate.cols());
  for (std::int64_t row = 0; row < gate.rows(); ++row) {
    for (std::int64_t col = 0; col < gate.cols(); ++col) {
      const double g = gate.at(row, col);
      const double u = up.at(row, col);
      const double exact = silu(g) * u;
      out.set(row, col, exact,
              relative * std::abs(exact) + (std::abs(g * u) + 1.0) * 2 * kFloatTiny);
    }
  }
  return out;
}

}  // namespace tidekv::oracle
