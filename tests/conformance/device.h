// A backend under test with its threads and scratch, and tensors on it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/registry.h"
#include "base/thread_pool.h"
#include "oracle/attention_ops.h"
#include "oracle/expected.h"
#include "oracle/host_tensor.h"
#include "oracle/layer_ops.h"

namespace tidekv::conformance {

using oracle::Expected;
using oracle::HostTensor;
using oracle::Kv;
using oracle::Random;

struct DeviceTensor {
  Buffer buffer;
  DeviceView view;
};

struct DeviceKv {
  DeviceTensor keys;
  DeviceTensor values;
  std::vector<HeadSpan> heads;

  KvView view() const { return {keys.view, values.view, heads}; }
};

Linear<DeviceView> view_of(const Linear<DeviceTensor>& linear);

constexpr Phase kPhases[] = {Phase::kPrefill, Phase::kDecode};

// What attention of a prompt holds.
enum class Held { kNothing, kMask, kScores };
inline constexpr Held kAllHeld[] = {Held::kNothing, Held::kMask, Held::kScores};

// All that attention leaves; what it does not hold has no rows.
struct Attended {
  HostTensor out;
  HostTensor mask;
  HostTensor scores;
  HostTensor weights;
  HostTensor
      lse;  // [2 * q_heads, window_len + 2] of the newest rows: a column of NaN on both sides
};

class Device {
 public:
  explicit Device(const BackendEntry& entry, int num_threads = 2);

  Backend& backend() { return *backend_; }
  // Fills scratch with NaNs: no operation may depend on what an earlier one left there.
  void poison_workspace();

  DeviceTensor put(const HostTensor& tensor);
  DeviceKv put(const Kv& kv);
  Linear<DeviceTensor> put(const Linear<HostTensor>& linear);
  // Rows k, v [rows, kv_heads * D] behind those of each head.
  void append(DeviceKv& cache, const HostTensor& k, const HostTensor& v);
  // All bits one: NaN as float, -1 as integer.
  DeviceTensor garbage(DType dtype, std::int64_t rows, std::int64_t cols);
  HostTensor get(DeviceView view);

  // Operations on host tensors: upload, run, download.
  HostTensor embed(const HostTensor& table, const HostTensor& ids, DType out_type);
  HostTensor matmul(const HostTensor& a, const HostTensor& w, DType out_type,
                    Phase phase = Phase::kPrefill, const oracle::Addends& add = {});
  HostTensor gated_matmul(const HostTensor& a, const Linear<HostTensor>& gate,
                          const Linear<HostTensor>& up, Phase phase = Phase::kPrefill);
  HostTensor matmul_onto(const HostTensor& a, const HostTensor& w, const HostTensor& old);
  HostTensor rms_norm(const HostTensor& x, const HostTensor& weight, float eps);
  HostTensor swiglu(const HostTensor& gate, const HostTensor& up);
  HostTensor attend(const HostTensor& q, const Kv& kv, Phase phase = Phase::kPrefill);
  Attended attend_and_look(const HostTensor& q, const Kv& kv, Held held, std::int64_t window_len);
  HostTensor window_lse(const HostTensor& q, const Kv& kv);
  HostTensor score_keys(const HostTensor& q, const Kv& kv, const HostTensor& lse, KeyRange range);

 private:
  ThreadPool pool_;
  std::unique_ptr<Backend> backend_;
  Buffer workspace_buffer_;
  DeviceView workspace_;
};

// Every element within its bound of the exact value; a failure names the worst element.
testing::AssertionResult within_bounds(const HostTensor& got, const Expected& wanted);
// [1, head_dim / 2] f32, of rotary embedding with theta 10000.
HostTensor inverse_frequencies(std::int64_t head_dim);
// Equal byte for byte.
testing::AssertionResult same_bits(const HostTensor& got, const HostTensor& wanted);

// How hard the numbers are.
enum class Inputs {
  kPlain,     // normal logits of variance 1
  kExtreme,   // logits up to about 80 in magnitude
  kTies,      // keys repeat, so logits tie exactly
  kOutliers,  // single channels and values far above the rest
};
inline constexpr Inputs kAllInputs[] = {Inputs::kPlain, Inputs::kExtreme, Inputs::kTies,
                                        Inputs::kOutliers};

struct AttentionShape {
  std::int64_t num_kv_heads = 2;
  std::int64_t group = 1;
  std::int64_t head_dim = 64;
};

struct AttentionCase {
  HostTensor q;
  Kv kv;
};

// `rows` newest queries over heads of `lens` keys each. Heads lie in the slab with gaps before,
// between and behind them, and every row that holds no data is NaN.
AttentionCase attention_case(Random& random, DType dtype, const AttentionShape& shape,
                             const std::vector<std::int64_t>& lens, std::int64_t rows,
                             Inputs inputs);

// The same cache as it was `newest` tokens ago.
Kv without_newest(const Kv& kv, std::int64_t newest);

// One test case per backend of the registry that this machine can run.
class BackendTest : public testing::TestWithParam<const BackendEntry*> {
 protected:
  static constexpr std::uint64_t kSeed = 20240611;

  BackendTest() : device_(*GetParam()), random_(kSeed) {}

  Backend& backend() { return device_.backend(); }

  Device device_;
  Random random_;

 private:
  testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
};

std::vector<const BackendEntry*> available_backends();
std::string backend_test_name(const testing::TestParamInfo<const BackendEntry*>& info);

}  // namespace tidekv::conformance

// Runs every TEST_P of the suite on every available backend.
#define TIDEKV_ON_EVERY_BACKEND(suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(On, suite,                                                      \
                           testing::ValuesIn(::tidekv::conformance::available_backends()), \
                           ::tidekv::conformance::backend_test_name)
