// Expected Attention from its formulas, in double: mean and covariance of the queries in two
// passes, every rotation ahead formed and averaged, all logits of a head before their sum.
#pragma once

#include "oracle/attention_ops.h"

namespace tidekv::oracle {

// Moments of rotated queries q [rows, q_heads * D] at positions first, first + 1, ...: the rows of
// Backend::observe_queries.
Expected query_moments(const HostTensor& q, const HostTensor& inverse_freq, Position first);

// Those to expect at the positions ahead, from moments that may themselves be off by their bounds.
Expected expect_queries(const Expected& moments, std::int64_t num_observed,
                        const HostTensor& inverse_freq, const Backend::PositionsAhead& ahead);

// [2 * q_heads, 1], of queries that may be off by their bounds.
Expected expected_lse(const Kv& kv, const Expected& queries, KeyRange range);
// [kv_heads, range.len()], normalised over the keys in `all`.
Expected score_expected(const Kv& kv, const Expected& queries, KeyRange all, KeyRange range);

}  // namespace tidekv::oracle
