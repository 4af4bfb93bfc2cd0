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

Expected rms_norm(const HostTensor& x, const HostTensor& weight, double eps);

// What is added to a product before it is stored; null adds nothing.
struct Addends {
  const HostTensor* old = nullptr;   // of the output's shape and type
  const HostTensor* bias = nullptr;  // one row
};

// a w^T + bias + old, stored as `out_type`.
Expected matmul(const HostTensor& a, const HostTensor& w, DType out_type, const Addends& add = {});

// silu(a gate^T + bias) * (a up^T + bias), where both products are stored in a's type first.
Expected gated_matmul(const HostTensor& a, const Linear<HostTensor>& gate,
                      const Linear<HostTensor>& up);

// Angles are products of floats rounded to float, as in the models' own code; their cosines and
// sines are exact.
Expected rope_angles(const HostTensor& inverse_freq, Position first, std::int64_t rows);

Expected rope(const HostTensor& x, const HostTensor& angles, RopePairs pairs);

Expected swiglu(const HostTensor& gate, const HostTensor& up);

}  // namespace tidekv::oracle
