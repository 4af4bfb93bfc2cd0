// The operations of a decoder layer outside attention, from their formulas, in double.
#pragma once

#include "oracle/expected.h"
#include "oracle/host_tensor.h"
#include "tensor/linear.h"
#include "tensor/position.h"
#include "tensor/rope_pairs.h"

namespace tidekv::oracle {

// Exact: the stored value, rounded once to `out_type`.
HostTensor embed(const HostTensor& table, const HostTensor& ids, DType out_type);

// Operations on rows of activations take what stands before them with its own bounds, so that they
// can follow one another; `dtype` is the type that results are stored in.
Expected exactly(const HostTensor& x);

Expected rms_norm(const Expected& x, DType dtype, const HostTensor& weight, double eps);
inline Expected rms_norm(const HostTensor& x, const HostTensor& weight, double eps) {
  return rms_norm(exactly(x), x.dtype(), weight, eps);
}

// What is added to a product before it is stored; null adds nothing.
struct Addends {
  const HostTensor* old = nullptr;   // of the output's shape and type
  const HostTensor* bias = nullptr;  // one row
};

// a w^T + bias + old, stored as `out_type`.
Expected matmul(const HostTensor& a, const HostTensor& w, DType out_type, const Addends& add = {});

// a w^T + bias, stored in a's type.
Expected product(const HostTensor& a, const Linear<HostTensor>& linear);

// Angles are products of floats rounded to float, as in the models' own code; their cosines and
// sines are exact.
Expected rope_angles(const HostTensor& inverse_freq, Position first, std::int64_t rows);

Expected rope(const Expected& x, DType dtype, const HostTensor& angles, RopePairs pairs);
inline Expected rope(const HostTensor& x, const HostTensor& angles, RopePairs pairs) {
  return rope(exactly(x), x.dtype(), angles, pairs);
}

Expected swiglu(const Expected& gate, const Expected& up, DType dtype);
inline Expected swiglu(const HostTensor& gate, const HostTensor& up) {
  return swiglu(exactly(gate), exactly(up), gate.dtype());
}

}  // namespace tidekv::oracle
