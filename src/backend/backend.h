// One interface to a device: memory, and the operations of a decoder layer and of the layer-end
// compressor. All operations are mandatory; there is no capability matrix.
//
// Public functions check arguments and account; protected do_... functions do the work, so checks
// and accounting are the same for every backend. A Backend serves one request; it is not
// thread-safe, but runs its kernels on a shared ThreadPool.
//
// Determinism, which every implementation must keep (tests/backend_conformance_test.cc,
// tests/schedule_fidelity_test.cc): an output row is computed by the same operations in the same
// order whatever rows stand beside it and whatever the thread count. A matrix product cuts its sums
// at fixed depths only; attention and window_lse walk key tiles anchored at slot 0; window_lse,
// score_keys and attend share one query-key product and one exponential.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "backend/buffer.h"
#include "backend/kv_view.h"
#include "backend/quantised_view.h"
#include "base/thread_pool.h"
#include "memory/accountant.h"
#include "memory/plan.h"
#include "memory/pool_ledger.h"
#include "tensor/linear.h"
#include "tensor/position.h"
#include "tensor/rope_pairs.h"
#include "tensor/view.h"
#include "tidekv/result.h"

namespace tidekv {

enum class MatmulMode : std::uint8_t {
  kStore,       // out = a w^T
  kAccumulate,  // out += a w^T, rounded once
};

// What the rows of an operation belong to. For a prompt, weights, keys and values are packed into
// panels (quantised weights expanded on the way) that many rows use; for a generated token they are
// used as they are stored. The sums run in another order then, so this never follows from how many
// rows stand together.
enum class Phase : std::uint8_t { kPrefill, kDecode };

struct MatmulOptions {
  MatmulMode mode = MatmulMode::kStore;
  Phase phase = Phase::kPrefill;
  DeviceView bias = {};  // [1, n], added before rounding; no rows: none
};

// How rows become queries, keys and values.
struct HeadProjection {
  Linear<DeviceView> q;    // [q_heads * D, k]
  Linear<DeviceView> k;    // [kv_heads * D, k]
  Linear<DeviceView> v;    // the same
  DeviceView q_norm = {};  // [1, D], for each head as in rms_norm; no rows: heads are not normed
  DeviceView k_norm = {};  // the same
  float eps = 0;           // of the norms
  DeviceView angles = {};  // [rows, D], of rope_angles
  RopePairs pairs = RopePairs::kHalves;
  Phase phase = Phase::kPrefill;
};

// Where attention leaves max and normaliser of its newest rows, bit for bit as window_lse finds
// them.
struct LseColumns {
  DeviceView lse = {};     // [2 * q_heads, W] f32, as of window_lse
  std::int64_t begin = 0;  // column of the first of these rows
  std::int64_t count = 0;  // 0: nowhere
};

// How attention runs, and what it leaves beside its output. The output is the same bit for bit
// whatever stands here but for the phase.
struct AttentionOptions {
  Phase phase = Phase::kPrefill;
  // The rest is for prompts. What frameworks without a fused kernel hold; no rows: is not held.
  DeviceView mask = {};  // [rows, len of the longest head], of causal_mask
  // [group * rows, sum of the heads' lens] f32: all scores, with a mask. A KV head's rows,
  // query * group + g, lie behind those of the one before.
  DeviceView scores = {};
  DeviceView weights = {};  // the same: what softmax makes of them, undivided
  LseColumns lse = {};
};

enum class GroupReduce : std::uint8_t { kMean, kMax };
enum class Pool : std::uint8_t { kMax, kAverage };
// Whether a KV head's score is its own, or the mean over all KV heads, which then agree.
enum class HeadScores : std::uint8_t { kOwn, kMean };

// Keys [begin, end) by slot of the active layer, where slot and position agree.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t len() const { return end - begin; }
};

// How attention weights become one score per KV head and key (Eq. (7); SnapKV).
struct PoolRecipe {
  GroupReduce group_reduce = GroupReduce::kMean;  // over the query heads of a KV head, first
  Pool pool = Pool::kMax;                         // then over neighbouring keys of the prefix
  std::int64_t kernel_len = 7;                    // odd; 1 pools nothing
  HeadScores heads = HeadScores::kOwn;            // before pooling
};

// The best candidates of each list so far, a heap per list. A list is a KV head, which may have a
// length of its own, or all heads together.
struct TopKState {
  DeviceView scores;                   // [1, sum of lens] f32
  DeviceView ids;                      // [1, sum of lens] i32: positions, mostly
  std::span<const std::int64_t> lens;  // candidates each list keeps
  std::int64_t num_offered = 0;        // to each list so far; the host keeps count
};

struct BackendOptions {
  ThreadPool* pool = nullptr;  // runs the kernels
  std::int64_t timeline_capacity = 0;
  std::int64_t fail_allocation = -1;  // tests: this allocation (from 0) reports out of memory
  // Once true, kernels skip the tasks they have not begun; the caller drops their results.
  const std::atomic<bool>* cancel = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // --- memory ---

  // Bytes for all charges together (at most two), uninitialised, 64-byte aligned.
  Result<Buffer> allocate(std::initializer_list<Charge> charges);
  // Takes the plan's arena from the system. From now on the n-th allocation is the plan's n-th.
  Status reserve(const MemoryPlan& plan);
  // The next allocation's number. Repeating from an earlier one, all of whose successors have been
  // released, makes the same allocations again in the same places: steps of one shape need no plan
  // of their own.
  std::int64_t next_allocation() const { return num_allocations_; }
  void repeat_allocations_from(std::int64_t number);
  // Bytes reserve() took; 0 before.
  std::int64_t reserved_bytes() const { return reserved_bytes_; }
  // Scratch the kernels need for this head_dim, all threads together; independent of prompt length.
  virtual std::int64_t workspace_bytes(std::int64_t head_dim) const = 0;
  // The scratch itself; set before any operation below, outlives them.
  void use_workspace(DeviceView workspace);
  // Weights stay where the file maps them when the device can read host memory.
  Result<DeviceView> import_weights(const HostView& weights);
  Accountant& accountant() { return accountant_; }
  const Accountant& accountant() const { return accountant_; }

  // True from the moment the request's cancel flag was seen; results since then are undefined.
  bool cancelled() const { return cancel_.cancelled(); }

  // --- the offload pool: memory beside the device's, of one request, which only transfers reach
  // ---

  // All of it, uninitialised, once and until the backend dies; after reserve() what the plan says.
  Result<PoolView> open_pool(DType dtype, std::int64_t rows, std::int64_t cols);
  // Rows from the device to the pool, and back; counted.
  void store(DeviceView from, PoolView to);
  void load(PoolView from, DeviceView to);
  const PoolLedger& pool() const { return pool_ledger_; }

  // --- movement ---

  void upload(std::span<const std::byte> from, DeviceView to);
  void download(DeviceView from, std::span<std::byte> to);
  void download(PoolView from, std::span<std::byte> to);  // for who looks on; not counted
  void copy(DeviceView from, DeviceView to);
  // Waits for the device; the one place its errors surface.
  Status synchronize();

  // --- decoder layer; activations are f32 or bf16, weights of any type but i32 ---

  // out[r] = table[ids[r]]. ids [1, rows] i32; table [vocab, d]; out [rows, d].
  void embed(DeviceView table, DeviceView ids, DeviceView out);
  // out[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight. x, out [rows, d]; weight [1, d].
  void rms_norm(DeviceView x, DeviceView weight, float eps, DeviceView out);
  // out (+)= a w^T + bias, sums in f32, cut at fixed depths. a [m, k]; w [n, k]; out [m, n] (f32 or
  // a's type).
  void matmul(DeviceView a, DeviceView w, DeviceView out, const MatmulOptions& options);
  // out = silu(gate's product) * (up's product): bit for bit two products of a [m, k] stored in a's
  // type, then swiglu. Weights [n, k] and biases [1, n] as in matmul; out [m, n].
  void gated_matmul(DeviceView a, const Linear<DeviceView>& gate, const Linear<DeviceView>& up,
                    DeviceView out, Phase phase);
  // cos and sin of position * inverse_freq, product in f32. inverse_freq [1, D/2] f32;
  // out [rows, D] f32: D/2 cosines, then D/2 sines, of positions first, first + 1, ...
  void rope_angles(DeviceView inverse_freq, Position first, DeviceView out);
  // Queries, keys and values of rows a [rows, k]. Products are stored in a's type as by matmul;
  // then every head of queries and keys is normed, if it is, and its pairs are rotated by the row's
  // angles and put at (i, i + D/2). queries [n, q_heads * D]: of the newest n rows, or none; keys
  // and values go behind each head's len (the caller then advances it).
  void project_heads(DeviceView a, const HeadProjection& projection, DeviceView queries,
                     const KvView& kv);
  // Causal attention, in place: q [rows, q_heads * D] becomes the output. The rows are the newest
  // of the cache: row r sees each head's slots [0, len - rows + r + 1). Of a view of some heads,
  // only the columns of their query heads, and by the same operations as with all.
  void attend(DeviceView q, const KvView& kv, const AttentionOptions& options);
  // mask[r][c] = 0 where row r sees the key, else minus infinity. mask [rows, keys] f32 or bf16;
  // the rows are the newest of the keys.
  void causal_mask(DeviceView mask);
  // out = silu(gate) * up, elementwise; out may be gate.
  void swiglu(DeviceView gate, DeviceView up, DeviceView out);

  // --- layer-end compression (Alg. 2); queries are the newest rows, as in attend ---

  // Pass 1, Eqs. (4)-(6): max and normaliser of every window row over the keys it sees.
  // q [W, q_heads * D]; lse [2 * q_heads, W] f32: all maxima, then all normalisers.
  void window_lse(DeviceView q, const KvView& kv, DeviceView lse);
  // Pass 2, Eq. (7): normalised attention weights of keys in `range`, 0 where a row does not see
  // the key. weights [q_heads * W, range.len()] f32, row h * W + w.
  void score_keys(DeviceView q, const KvView& kv, DeviceView lse, KeyRange range,
                  DeviceView weights);
  // scores[h][i] = -|k|, the length of key range.begin + i of head h. scores [kv_heads,
  // range.len()] f32.
  void score_key_norms(const KvView& kv, KeyRange range, DeviceView scores);
  // Sums weights over the window, reduces the group, pools over keys. `scored` is the range in
  // `weights`; `wanted` lies in it with a halo of kernel_len / 2 on both sides, or ends where the
  // prefix [0, prefix_len) ends. raw [kv_heads, scored.len()] f32 is scratch;
  // scores [kv_heads, wanted.len()] f32.
  struct PoolRanges {
    KeyRange scored;
    KeyRange wanted;
    std::int64_t prefix_len = 0;
    std::int64_t window_len = 0;  // rows of `weights` per query head
  };
  void pool_scores(DeviceView weights, const PoolRecipe& recipe, const PoolRanges& ranges,
                   DeviceView raw, DeviceView scores);
  // averages[h][u] = mean of scores [u * unit_len, (u + 1) * unit_len) of row h; the last unit may
  // be shorter. scores [rows, n] f32; averages [rows, ceil(n / unit_len)] f32.
  void average_units(DeviceView scores, std::int64_t unit_len, DeviceView averages);
  // Offers candidates first, first + 1, ... with their scores [lists, n] to the best; higher score
  // first, then lower id. NaN counts as -infinity. The caller adds n to num_offered.
  void topk_merge(DeviceView scores, std::int64_t first, const TopKState& state);
  // counts[c] = how many of ids [1, n] lie in [c * stride, (c + 1) * stride). counts [1, classes]
  // i32.
  void count_ids(DeviceView ids, std::int64_t stride, DeviceView counts);
  // For every KV head, one behind the other: positions [0, sinks), its list of ids, and
  // [prompt_len - recent, prompt_len), ascending. retained [1, sum of lens + heads * mandatory]
  // i32. num_offered must be at least as long as the longest list.
  struct Mandatory {
    std::int64_t num_sinks = 0;
    std::int64_t num_recent = 0;
    std::int64_t prompt_len = 0;
    std::int64_t count() const { return num_sinks + num_recent; }
  };
  void topk_take(const TopKState& state, const Mandatory& mandatory, DeviceView retained);
  // Copies rows `slots` of each head of `from` behind that head's len of `to`.
  void gather_rows(const KvView& from, const HeadLists& slots, const KvView& to);

  // --- scores that ask no query (KeyDiff) ---

  // anchors[h] = mean of k / max(|k|, 1e-12) over head h's rows. anchors [kv_heads, D] f32.
  void mean_directions(const KvView& kv, DeviceView anchors);
  // scores[h][i] = -cos(k, anchors[h]) of the key in slot range.begin + i; no length counts as less
  // than 1e-8. scores [kv_heads, range.len()] f32.
  void score_directions(const KvView& kv, DeviceView anchors, KeyRange range, DeviceView scores);
  // --- scores by the queries to expect (Expected Attention) ---
  // Moments of rows of D numbers, one head after the other: [q_heads * (D + 1), D] f32, of each
  // head the mean and then D rows of the sums of products of what is left beside it.

  // Takes rows more into moments of num_before rows, unrotated. q [rows, q_heads * D]; angles
  // [rows, D], of rope_angles.
  void observe_queries(DeviceView q, DeviceView angles, std::int64_t num_before,
                       DeviceView moments);
  struct PositionsAhead {
    Position first{0};
    std::int64_t count = 0;
  };
  // Of num_observed queries the moments that their like have at the positions ahead, all of which
  // count the same: the mean over sqrt(D), the covariance over 2 D. inverse_freq [1, D/2] f32;
  // expected as moments.
  void expect_queries(DeviceView moments, std::int64_t num_observed, DeviceView inverse_freq,
                      const PositionsAhead& ahead, DeviceView expected);
  // Of k mean + k covariance k, the logarithm of the attention to expect, the maximum and the
  // normaliser over the keys in `range`. lse [2 * q_heads, 1] f32: all maxima, then all
  // normalisers.
  void expected_lse(const KvView& kv, DeviceView expected, KeyRange range, DeviceView lse);
  // scores[h][i] = that attention, normalised, to the key in slot range.begin + i, on average over
  // the query heads of KV head h, times |v|. scores [kv_heads, range.len()] f32.
  void score_expected(const KvView& kv, DeviceView expected, DeviceView lse, KeyRange range,
                      DeviceView scores);

  // --- caches that are cut more than once ---

  // Names each head's rows by position instead of slot, in place: the first rows have the positions
  // `cached`, those behind them first, first + 1, ...
  void slots_to_positions(const HeadLists& cached, Position first, const HeadLists& slots);
  // Moves rows `slots` of each head, ascending, to the head's front. The caller then sets its len.
  void keep_rows(const HeadLists& slots, const KvView& kv);

  // --- keys and values in few bits (KIVI) ---

  // Of every group of rows x [n, D]: m = its smallest element, s = (largest - m) / (2^bits - 1),
  // both stored in x's type; code = (x - m) / s from 0 to 2^bits - 1, nearest, ties to even; 0
  // where s is.
  void quantise_rows(DeviceView x, const QuantisedRows& to);
  // attend of one generated token, q [1, q_heads * D], over codes as they are stored.
  void attend_quantised(DeviceView q, const QuantisedKvView& kv);

 protected:
  explicit Backend(const BackendOptions& options);

  virtual Result<std::byte*> do_allocate(std::int64_t id, std::int64_t bytes) = 0;
  virtual void do_release(std::int64_t id, std::byte* data, std::int64_t bytes) = 0;
  virtual Status do_reserve(std::int64_t arena_bytes, std::int64_t pool_bytes) = 0;
  // do_copy reaches its bytes as it does the device's.
  virtual Result<std::byte*> do_open_pool(std::int64_t bytes) = 0;
  virtual Result<DeviceView> do_import_weights(const HostView& weights) = 0;
  virtual void do_upload(std::span<const std::byte> from, DeviceView to) = 0;
  virtual void do_download(DeviceView from, std::span<std::byte> to) = 0;
  virtual void do_copy(DeviceView from, DeviceView to) = 0;
  virtual Status do_synchronize() = 0;
  virtual void do_embed(DeviceView table, DeviceView ids, DeviceView out) = 0;
  virtual void do_rms_norm(DeviceView x, DeviceView weight, float eps, DeviceView out) = 0;
  virtual void do_matmul(DeviceView a, DeviceView w, DeviceView out,
                         const MatmulOptions& options) = 0;
  virtual void do_gated_matmul(DeviceView a, const Linear<DeviceView>& gate,
                               const Linear<DeviceView>& up, DeviceView out, Phase phase) = 0;
  virtual void do_project_heads(DeviceView a, const HeadProjection& projection, DeviceView queries,
                                const KvView& kv) = 0;
  virtual void do_rope_angles(DeviceView inverse_freq, Position first, DeviceView out) = 0;
  virtual void do_attend(DeviceView q, const KvView& kv, const AttentionOptions& options) = 0;
  virtual void do_causal_mask(DeviceView mask) = 0;
  virtual void do_swiglu(DeviceView gate, DeviceView up, DeviceView out) = 0;
  virtual void do_window_lse(DeviceView q, const KvView& kv, DeviceView lse) = 0;
  virtual void do_score_keys(DeviceView q, const KvView& kv, DeviceView lse, KeyRange range,
                             DeviceView weights) = 0;
  virtual void do_score_key_norms(const KvView& kv, KeyRange range, DeviceView scores) = 0;
  virtual void do_pool_scores(DeviceView weights, const PoolRecipe& recipe,
                              const PoolRanges& ranges, DeviceView raw, DeviceView scores) = 0;
  virtual void do_average_units(DeviceView scores, std::int64_t unit_len, DeviceView averages) = 0;
  virtual void do_topk_merge(DeviceView scores, std::int64_t first, const TopKState& state) = 0;
  virtual void do_count_ids(DeviceView ids, std::int64_t stride, DeviceView counts) = 0;
  virtual void do_topk_take(const TopKState& state, const Mandatory& mandatory,
                            DeviceView retained) = 0;
  virtual void do_gather_rows(const KvView& from, const HeadLists& slots, const KvView& to) = 0;
  virtual void do_mean_directions(const KvView& kv, DeviceView anchors) = 0;
  virtual void do_score_directions(const KvView& kv, DeviceView anchors, KeyRange range,
                                   DeviceView scores) = 0;
  virtual void do_observe_queries(DeviceView q, DeviceView angles, std::int64_t num_before,
                                  DeviceView moments) = 0;
  virtual void do_expect_queries(DeviceView moments, std::int64_t num_observed,
                                 DeviceView inverse_freq, const PositionsAhead& ahead,
                                 DeviceView expected) = 0;
  virtual void do_expected_lse(const KvView& kv, DeviceView expected, KeyRange range,
                               DeviceView lse) = 0;
  virtual void do_score_expected(const KvView& kv, DeviceView expected, DeviceView lse,
                                 KeyRange range, DeviceView scores) = 0;
  virtual void do_slots_to_positions(const HeadLists& cached, Position first,
                                     const HeadLists& slots) = 0;
  virtual void do_keep_rows(const HeadLists& slots, const KvView& kv) = 0;
  virtual void do_quantise_rows(DeviceView x, const QuantisedRows& to) = 0;
  virtual void do_attend_quantised(DeviceView q, const QuantisedKvView& kv) = 0;

  // The plan's place for allocation `id`, or nullptr when nothing is reserved.
  const PlannedAllocation* planned(std::int64_t id) const;
  // Runs the kernels; skips what is left when the request is cancelled.
  TaskRunner tasks() const { return TaskRunner(*pool_, cancel_); }
  const DeviceView& workspace() const { return workspace_; }

 private:
  friend class Buffer;
  void release(Buffer& buffer);

  ThreadPool* pool_;
  Accountant accountant_;
  std::int64_t fail_allocation_;
  CancelLatch cancel_;
  std::int64_t num_allocations_ = 0;
  std::vector<PlannedAllocation> plan_;
  std::int64_t reserved_bytes_ = 0;
  std::int64_t reserved_pool_bytes_ = 0;
  PoolLedger pool_ledger_;
  DeviceView workspace_;
};

}  // namespace tidekv
