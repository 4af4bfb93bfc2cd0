#include "conformance/projected_heads.h"

#include <limits>
#include <utility>
#include <vector>

namespace tidekv::conformance {
namespace {

// Heads that have 0, 3, 6, ... rows, with room for `rows` more and one, and gaps around them.
Kv ragged_cache(DType dtype, std::int64_t num_heads, std::int64_t head_dim, std::int64_t rows) {
  Kv kv;
  std::int64_t slab_rows = 0;
  for (std::int64_t head = 0; head < num_heads; ++head) {
    const HeadSpan span{slab_rows + 1 + head % 3, 3 * head, 3 * head + rows + 1};
    kv.heads.push_back(span);
    slab_rows = span.offset + span.capacity;
  }
  kv.keys = HostTensor(dtype, slab_rows + 2, head_dim);
  kv.keys.fill(std::numeric_limits<double>::quiet_NaN());
  kv.values = kv.keys;
  return kv;
}

// The new rows of a slab, heads side by side; they leave `slab` as they found it, from `before`.
HostTensor take_new_rows(HostTensor& slab, const HostTensor& before,
                         const std::vector<HeadSpan>& heads, std::int64_t rows) {
  const std::int64_t dim = slab.cols();
  HostTensor taken(slab.dtype(), rows, static_cast<std::int64_t>(heads.size()) * dim);
  std::int64_t col = 0;
  for (const HeadSpan& head : heads) {
    const std::int64_t first = head.offset + head.len;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < dim; ++i) {
        taken.set(row, col + i, slab.at(first + row, i));
      }
    }
    slab.put_rows(first, before.rows_at(first, rows));
    col += dim;
  }
  return taken;
}

}  // namespace

Heads<HostTensor> project_heads(Device& device, const HostTensor& a,
                                const HostProjection& projection, Phase phase,
                                std::int64_t num_queries) {
  const std::int64_t head_dim = projection.head_dim();
  const Kv before =
      ragged_cache(a.dtype(), projection.k.weight.rows() / head_dim, head_dim, a.rows());
  const DeviceKv cache = device.put(before);
  const DeviceTensor rows = device.put(a);
  const DeviceTensor queries = device.garbage(a.dtype(), num_queries, projection.q.weight.rows());
  const Linear<DeviceTensor> q = device.put(projection.q);
  const Linear<DeviceTensor> k = device.put(projection.k);
  const Linear<DeviceTensor> v = device.put(projection.v);
  const DeviceTensor q_norm = device.put(projection.q_norm);
  const DeviceTensor k_norm = device.put(projection.k_norm);
  const DeviceTensor angles = device.put(projection.angles);
  device.backend().project_heads(rows.view,
                                 {.q = view_of(q),
                                  .k = view_of(k),
                                  .v = view_of(v),
                                  .q_norm = q_norm.view,
                                  .k_norm = k_norm.view,
                                  .eps = projection.eps,
                                  .angles = angles.view,
                                  .pairs = projection.pairs,
                                  .phase = phase},
                                 queries.view, cache.view());
  HostTensor keys = device.get(cache.keys.view);
  HostTensor values = device.get(cache.values.view);
  Heads<HostTensor> heads{device.get(queries.view),
                          take_new_rows(keys, before.keys, before.heads, a.rows()),
                          take_new_rows(values, before.values, before.heads, a.rows())};
  EXPECT_TRUE(same_bits(keys, before.keys));
  EXPECT_TRUE(same_bits(values, before.values));
  return heads;
}

HostTensor rotated(Device& device, const HostTensor& x, const HostTensor& angles, RopePairs pairs) {
  HostTensor ones(DType::kF32, x.cols(), x.cols());
  for (std::int64_t i = 0; i < x.cols(); ++i) {
    ones.set(i, i, 1.0);
  }
  const HostTensor of_one_head = ones.rows_at(0, angles.cols());
  const HostProjection projection{
      .q = {ones}, .k = {of_one_head}, .v = {of_one_head}, .angles = angles, .pairs = pairs};
  return project_heads(device, x, projection, Phase::kPrefill).q;
}

namespace {

// [rows, heads * D] as [rows * heads, D], or the other way round.
Expected reshaped(Expected x, std::int64_t rows, std::int64_t cols) {
  x.rows = rows;
  x.cols = cols;
  return x;
}

Expected expected_part(const HostTensor& a, const HostProjection& projection,
                       const Linear<HostTensor>& linear, const HostTensor& norm) {
  const std::int64_t head_dim = projection.head_dim();
  const std::int64_t cols = linear.weight.rows();
  Expected heads = oracle::product(a, linear);
  if (norm.rows() > 0) {
    heads = reshaped(std::move(heads), a.rows() * cols / head_dim, head_dim);
    heads = oracle::rms_norm(heads, a.dtype(), norm, static_cast<double>(projection.eps));
    heads = reshaped(std::move(heads), a.rows(), cols);
  }
  return oracle::rope(heads, a.dtype(), projection.angles, projection.pairs);
}

}  // namespace

Heads<Expected> expected_heads(const HostTensor& a, const HostProjection& projection) {
  return {expected_part(a, projection, projection.q, projection.q_norm),
          expected_part(a, projection, projection.k, projection.k_norm),
          oracle::product(a, projection.v)};
}

}  // namespace tidekv::conformance
