// Queries, keys and values of host tensors: what a backend gives, and what it should.
#pragma once

#include <cstdint>

#include "conformance/device.h"

namespace tidekv::conformance {

// HeadProjection on the host.
struct HostProjection {
  Linear<HostTensor> q;
  Linear<HostTensor> k;
  Linear<HostTensor> v;
  HostTensor q_norm = {};  // no rows: none
  HostTensor k_norm = {};
  HostTensor angles = {};
  RopePairs pairs = RopePairs::kHalves;
  float eps = 1e-5F;

  std::int64_t head_dim() const { return angles.cols(); }
};

// Heads side by side: [rows, heads * D].
template <typename Matrix>
struct Heads {
  Matrix q;
  Matrix k;
  Matrix v;
};

// Keys and values go into a ragged cache whose rows, but for the new ones, must not change. Queries
// are of the newest `num_queries` rows.
Heads<HostTensor> project_heads(Device& device, const HostTensor& a,
                                const HostProjection& projection, Phase phase,
                                std::int64_t num_queries);
inline Heads<HostTensor> project_heads(Device& device, const HostTensor& a,
                                       const HostProjection& projection, Phase phase) {
  return project_heads(device, a, projection, phase, a.rows());
}

// Every head of x [rows, heads * D] rotated: projected by a matrix of ones on its diagonal, which
// changes no number.
HostTensor rotated(Device& device, const HostTensor& x, const HostTensor& angles, RopePairs pairs);

Heads<Expected> expected_heads(const HostTensor& a, const HostProjection& projection);

}  // namespace tidekv::conformance
