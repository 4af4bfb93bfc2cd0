// Attention and the scores made of it (Eqs. (4)-(7)), from their formulas, in double: the logits of
// a row are all formed, then its largest, then the sum, then the weights.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/kv_view.h"
#include "oracle/expected.h"
#include "oracle/host_tensor.h"

namespace tidekv::oracle {

// A KvView in host memory.
struct Kv {
  HostTensor keys;
  HostTensor values;
  std::vector<HeadSpan> heads;

  std::int64_t num_kv_heads() const { return static_cast<std::int64_t>(heads.size()); }
  std::int64_t head_dim() const { return keys.cols(); }
};

// Logits of one query row of one head over the keys it sees, and what rounding may do to each.
struct Logits {
  std::vector<double> value;
  std::vector<double> bound;
  double max = 0;
  double normaliser = 0;  // sum of exp(value - max)
  double max_bound = 0;   // the largest of `bound`
  double growths = 0;     // keys at which a running maximum over ascending keys may still grow
};
Logits logits_of(const HostTensor& q, const Kv& kv, std::int64_t row, std::int64_t q_head);

Expected attend(const HostTensor& q, const Kv& kv);

// [2 * q_heads, W]: all maxima, then all normalisers.
Expected window_lse(const HostTensor& q, const Kv& kv);

// [q_heads * W, range.len()], normalised by the maxima and normalisers given in `lse`.
Expected score_keys(const HostTensor& q, const Kv& kv, const HostTensor& lse, KeyRange range);

// [kv_heads, range.len()]: minus the lengths of the keys.
Expected score_key_norms(const Kv& kv, KeyRange range);

// [kv_heads, head_dim]: the mean of each head's keys, divided by their lengths.
Expected mean_directions(const Kv& kv);
// [kv_heads, range.len()]: minus the cosines of the keys and their head's anchor, which may itself
// be off by its bounds.
Expected score_directions(const Kv& kv, const Expected& anchors, KeyRange range);

// [kv_heads, wanted.len()] from weights [q_heads * W, scored.len()], which are not negative.
Expected pool_scores(const HostTensor& weights, std::int64_t num_kv_heads, const PoolRecipe& recipe,
                     const Backend::PoolRanges& ranges);

}  // namespace tidekv::oracle
