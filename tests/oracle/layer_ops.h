// The operations of a decoder layer outside attention, from their formulas, in double.
#pragma once

#include "oracle/expected.h"
#include "oracle/host_tensor.h"
#include "tensor/position.h"

namespace tidekv::oracle {

// Exact: the stored value, rounded once to `out_type`.
HostTensor embed(const HostTensor& table, const HostTensor& ids, DType out_type);

Expected rms_norm(const HostTensor& x, const HostTensor& weight, double eps);

// a w^T, or old + a w^T where `old` is given; stored as `out_type`.
Expected matmul(const HostTensor& a, const HostTensor& w, DType out_type, const HostTensor* old);

// Angles are products of floats rounded to float, as in the models' own code; their cosines and
// sines are exact.
Expected rope_angles(const HostTensor& inverse_freq, Position first, std::int64_t rows);

Expected rope(const HostTensor& x, const HostTensor& angles);

Expected swiglu(const HostTensor& gate, const HostTensor& up);

}  // namespace tidekv::oracle
