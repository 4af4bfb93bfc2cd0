#include "conformance/device.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidekv::conformance {
namespace {

constexpr std::int64_t kLargestHeadDim = 256;

Buffer must(Result<Buffer> buffer) {
  EXPECT_TRUE(buffer.ok()) << buffer.error().message;
  return std::move(buffer).value();
}

// Columns [first, first + count).
HostTensor cols_at(const HostTensor& rows, std::int64_t first, std::int64_t count) {
  HostTensor part(rows.dtype(), rows.rows(), count);
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    for (std::int64_t col = 0; col < count; ++col) {
      part.set(row, col, rows.at(row, first + col));
    }
  }
  return part;
}

}  // namespace

Linear<DeviceView> view_of(const Linear<DeviceTensor>& linear) {
  return {linear.weight.view, linear.bias.view};
}

Device::Device(const BackendEntry& entry, int num_threads)
    : pool_(num_threads), backend_(entry.create({.pool = &pool_})) {
  const std::int64_t floats = (backend_->workspace_bytes(kLargestHeadDim) + 3) / 4;
  workspace_buffer_ = must(backend_->allocate({{Component::kKernelPanels, floats * 4}}));
  workspace_ = workspace_buffer_.view(DType::kF32, 1, floats);
  backend_->use_workspace(workspace_);
  poison_workspace();
}

void Device::poison_workspace() {
  const std::vector<std::byte> ones(static_cast<std::size_t>(workspace_.num_bytes()),
                                    std::byte{0xFF});
  backend_->upload(ones, workspace_);
}

DeviceTensor Device::put(const HostTensor& tensor) {
  DeviceTensor on_device;
  const auto bytes = static_cast<std::int64_t>(tensor.bytes().size());
  on_device.buffer = must(backend_->allocate({{Component::kActivations, bytes}}));
  on_device.view = on_device.buffer.view(tensor.dtype(), tensor.rows(), tensor.cols());
  backend_->upload(tensor.bytes(), on_device.view);
  return on_device;
}

DeviceKv Device::put(const Kv& kv) { return {put(kv.keys), put(kv.values), kv.heads}; }

Linear<DeviceTensor> Device::put(const Linear<HostTensor>& linear) {
  return {put(linear.weight), put(linear.bias)};
}

void Device::append(DeviceKv& cache, const HostTensor& k, const HostTensor& v) {
  const std::int64_t dim = cache.keys.view.cols();
  std::int64_t col = 0;
  for (HeadSpan& head : cache.heads) {
    const std::int64_t first = head.offset + head.len;
    backend_->upload(cols_at(k, col, dim).bytes(), cache.keys.view.rows_at(first, k.rows()));
    backend_->upload(cols_at(v, col, dim).bytes(), cache.values.view.rows_at(first, v.rows()));
    head.len += k.rows();
    col += dim;
  }
}

DeviceTensor Device::garbage(DType dtype, std::int64_t rows, std::int64_t cols) {
  HostTensor ones(dtype, rows, cols);
  std::fill(ones.bytes().begin(), ones.bytes().end(), std::byte{0xFF});
  return put(ones);
}

HostTensor Device::get(DeviceView view) {
  HostTensor tensor(view.dtype(), view.rows(), view.cols());
  backend_->download(view, tensor.bytes());
  EXPECT_TRUE(backend_->synchronize().ok());
  return tensor;
}

HostTensor Device::embed(const HostTensor& table, const HostTensor& ids, DType out_type) {
  const DeviceTensor from = put(table);
  const DeviceTensor picked = put(ids);
  const DeviceTensor out = garbage(out_type, ids.cols(), table.cols());
  backend_->embed(from.view, picked.view, out.view);
  return get(out.view);
}

HostTensor Device::matmul(const HostTensor& a, const HostTensor& w, DType out_type, Phase phase,
                          const oracle::Addends& add) {
  const DeviceTensor left = put(a);
  const DeviceTensor right = put(w);
  const DeviceTensor bias = add.bias == nullptr ? DeviceTensor{} : put(*add.bias);
  const DeviceTensor out =
      add.old == nullptr ? garbage(out_type, a.rows(), w.rows()) : put(*add.old);
  const MatmulMode mode = add.old == nullptr ? MatmulMode::kStore : MatmulMode::kAccumulate;
  backend_->matmul(left.view, right.view, out.view,
                   {.mode = mode, .phase = phase, .bias = bias.view});
  return get(out.view);
}

HostTensor Device::gated_matmul(const HostTensor& a, const Linear<HostTensor>& gate,
                                const Linear<HostTensor>& up, Phase phase) {
  const DeviceTensor left = put(a);
  const Linear<DeviceTensor> gates = put(gate);
  const Linear<DeviceTensor> ups = put(up);
  const DeviceTensor out = garbage(a.dtype(), a.rows(), gate.weight.rows());
  backend_->gated_matmul(left.view, view_of(gates), view_of(ups), out.view, phase);
  return get(out.view);
}

HostTensor Device::matmul_onto(const HostTensor& a, const HostTensor& w, const HostTensor& old) {
  return matmul(a, w, old.dtype(), Phase::kPrefill, {.old = &old});
}

HostTensor Device::rms_norm(const HostTensor& x, const HostTensor& weight, float eps) {
  const DeviceTensor in = put(x);
  const DeviceTensor scale = put(weight);
  const DeviceTensor out = garbage(x.dtype(), x.rows(), x.cols());
  backend_->rms_norm(in.view, scale.view, eps, out.view);
  return get(out.view);
}

HostTensor Device::swiglu(const HostTensor& gate, const HostTensor& up) {
  const DeviceTensor left = put(gate);
  const DeviceTensor right = put(up);
  const DeviceTensor out = garbage(gate.dtype(), gate.rows(), gate.cols());
  backend_->swiglu(left.view, right.view, out.view);
  return get(out.view);
}

HostTensor Device::attend(const HostTensor& q, const Kv& kv, Phase phase) {
  const DeviceTensor in_place = put(q);
  const DeviceKv cache = put(kv);
  backend_->attend(in_place.view, cache.view(), {.phase = phase});
  return get(in_place.view);
}

Attended Device::attend_and_look(const HostTensor& q, const Kv& kv, Held held,
                                 std::int64_t window_len) {
  const DeviceTensor in_place = put(q);
  const DeviceKv cache = put(kv);
  const KvView view = cache.view();
  const std::int64_t group = q.cols() / (view.num_kv_heads() * view.head_dim());
  const std::int64_t q_heads = q.cols() / view.head_dim();
  const DeviceTensor lse = garbage(DType::kF32, 2 * q_heads, window_len + 2);
  AttentionOptions options{.lse = {lse.view, 1, window_len}};
  DeviceTensor mask;
  DeviceTensor scores;
  DeviceTensor weights;
  if (held != Held::kNothing) {
    mask = garbage(q.dtype(), q.rows(), view.longest_head());
    backend_->causal_mask(mask.view);
    options.mask = mask.view;
  }
  if (held == Held::kScores) {
    scores = garbage(DType::kF32, group * q.rows(), view.total_rows());
    weights = garbage(DType::kF32, group * q.rows(), view.total_rows());
    options.scores = scores.view;
    options.weights = weights.view;
  }
  backend_->attend(in_place.view, view, options);
  const auto get_if_held = [&](const DeviceTensor& tensor) {
    return tensor.view.rows() > 0 ? get(tensor.view) : HostTensor{};
  };
  return {get(in_place.view), get_if_held(mask), get_if_held(scores), get_if_held(weights),
          get(lse.view)};
}

HostTensor Device::window_lse(const HostTensor& q, const Kv& kv) {
  const DeviceTensor queries = put(q);
  const DeviceKv cache = put(kv);
  const DeviceTensor lse = garbage(DType::kF32, 2 * (q.cols() / kv.head_dim()), q.rows());
  backend_->window_lse(queries.view, cache.view(), lse.view);
  return get(lse.view);
}

HostTensor Device::score_keys(const HostTensor& q, const Kv& kv, const HostTensor& lse,
                              KeyRange range) {
  const DeviceTensor queries = put(q);
  const DeviceKv cache = put(kv);
  const DeviceTensor normalisers = put(lse);
  const DeviceTensor weights =
      garbage(DType::kF32, q.cols() / kv.head_dim() * q.rows(), range.len());
  backend_->score_keys(queries.view, cache.view(), normalisers.view, range, weights.view);
  return get(weights.view);
}

testing::AssertionResult within_bounds(const HostTensor& got, const Expected& wanted) {
  if (got.rows() != wanted.rows || got.cols() != wanted.cols) {
    return testing::AssertionFailure() << "wrong shape";
  }
  std::int64_t num_wrong = 0;
  double worst = 0;
  std::int64_t worst_row = 0;
  std::int64_t worst_col = 0;
  for (std::int64_t row = 0; row < got.rows(); ++row) {
    for (std::int64_t col = 0; col < got.cols(); ++col) {
      const std::size_t at = wanted.index(row, col);
      const double error = std::abs(got.at(row, col) - wanted.value[at]);
      if (error <= wanted.bound[at]) {  // false for NaN
        continue;
      }
      ++num_wrong;
      const double excess = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                              : error / (wanted.bound[at] + 1e-300);
      if (excess > worst) {
        worst = excess;
        worst_row = row;
        worst_col = col;
      }
    }
  }
  if (num_wrong == 0) {
    return testing::AssertionSuccess();
  }
  const std::size_t at = wanted.index(worst_row, worst_col);
  return testing::AssertionFailure()
         << num_wrong << " of " << got.rows() * got.cols() << " elements out of bounds; worst ["
         << worst_row << ", " << worst_col << "]: got " << got.at(worst_row, worst_col)
         << ", exactly " << wanted.value[at] << ", allowed error " << wanted.bound[at];
}

HostTensor inverse_frequencies(std::int64_t head_dim) {
  HostTensor freq(DType::kF32, 1, head_dim / 2);
  for (std::int64_t i = 0; i < freq.cols(); ++i) {
    freq.set(0, i, std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
  }
  return freq;
}

testing::AssertionResult same_bits(const HostTensor& got, const HostTensor& wanted) {
  if (got.rows() != wanted.rows() || got.cols() != wanted.cols() || got.dtype() != wanted.dtype()) {
    return testing::AssertionFailure() << "different shapes or types";
  }
  const auto different =
      std::mismatch(got.bytes().begin(), got.bytes().end(), wanted.bytes().begin());
  if (different.first == got.bytes().end()) {
    return testing::AssertionSuccess();
  }
  const std::int64_t element = (different.first - got.bytes().begin()) / size_of(got.dtype());
  const std::int64_t row = element / got.cols();
  const std::int64_t col = element % got.cols();
  return testing::AssertionFailure() << "first difference at [" << row << ", " << col << "]: got "
                                     << got.at(row, col) << ", wanted " << wanted.at(row, col);
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One row of keys. Logits are products with normal queries over sqrt(head_dim): variance scale^2.
HostTensor make_keys(Random& random, DType dtype, std::int64_t len, std::int64_t dim,
                     Inputs inputs) {
  HostTensor keys = random.normals(dtype, len, dim, inputs == Inputs::kExtreme ? 25.0 : 1.0);
  if (inputs == Inputs::kTies) {
    constexpr std::int64_t kDistinct = 3;
    for (std::int64_t row = kDistinct; row < len; ++row) {
      keys.put_rows(row, keys.rows_at(row % kDistinct, 1));
    }
  }
  if (inputs == Inputs::kOutliers) {
    for (std::int64_t row = 0; row < len; ++row) {
      keys.set(row, dim / 2, 30.0 + random.normal());  // one channel far above the others
    }
  }
  return keys;
}

HostTensor make_values(Random& random, DType dtype, std::int64_t len, std::int64_t dim,
                       Inputs inputs) {
  HostTensor values = random.normals(dtype, len, dim);
  if (inputs == Inputs::kOutliers) {
    values.set(random.below(len), random.below(dim), 1e4);
    values.set(random.below(len), random.below(dim), -3e4);
  }
  return values;
}

}  // namespace

AttentionCase attention_case(Random& random, DType dtype, const AttentionShape& shape,
                             const std::vector<std::int64_t>& lens, std::int64_t rows,
                             Inputs inputs) {
  AttentionCase made;
  std::int64_t slab_rows = 0;
  for (std::int64_t head = 0; head < shape.num_kv_heads; ++head) {
    const std::int64_t len = lens[static_cast<std::size_t>(head) % lens.size()];
    const std::int64_t gap = 1 + random.below(5);  // rows of nobody in front
    const std::int64_t spare = random.below(9);
    made.kv.heads.push_back({slab_rows + gap, len, len + spare});
    slab_rows += gap + len + spare;
  }
  slab_rows += 2;
  made.kv.keys = HostTensor(dtype, slab_rows, shape.head_dim);
  made.kv.values = HostTensor(dtype, slab_rows, shape.head_dim);
  made.kv.keys.fill(kNan);
  made.kv.values.fill(kNan);
  for (const HeadSpan& head : made.kv.heads) {
    made.kv.keys.put_rows(head.offset, make_keys(random, dtype, head.len, shape.head_dim, inputs));
    made.kv.values.put_rows(head.offset,
                            make_values(random, dtype, head.len, shape.head_dim, inputs));
  }
  made.q = random.normals(dtype, rows, shape.num_kv_heads * shape.group * shape.head_dim);
  return made;
}

Kv without_newest(const Kv& kv, std::int64_t newest) {
  Kv earlier = kv;
  for (HeadSpan& head : earlier.heads) {
    head.len -= newest;
  }
  return earlier;
}

std::vector<const BackendEntry*> available_backends() {
  std::vector<const BackendEntry*> available;
  for (const BackendEntry& entry : backend_entries()) {
    if (entry.available()) {
      available.push_back(&entry);
    }
  }
  return available;
}

std::string backend_test_name(const testing::TestParamInfo<const BackendEntry*>& info) {
  std::string name(info.param->name);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

}  // namespace tidekv::conformance
