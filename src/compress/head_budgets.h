// How a layer's budget is split over its KV heads (Ada-KV).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidekv {

// `counts` [heads]: how many of a layer's best heads * base candidates each head has. Returns
// (1 - even_share) * count + even_share * base for each head, rounded so that the sum is
// heads * base: what rounding down leaves goes to the largest remainders, of equal ones to the
// lower head. No head gets more than its limit; their sum is at least heads * base.
std::vector<std::int64_t> split_over_heads(std::span<const std::int32_t> counts, double even_share,
                                           std::int64_t base, std::span<const std::int64_t> limits);

// The same where the even share is a floor: no head gets fewer than `floor`, and what is left goes
// to the best of the candidates beyond the heads' `floor` best. `scores` and `ids` [heads * base]
// are the best of all candidates, in any order; an id is head * stride + slot. floor <= base, and
// no limit is below the floor.
std::vector<std::int64_t> split_above_floor(std::span<const float> scores,
                                            std::span<const std::int32_t> ids, std::int64_t stride,
                                            std::int64_t floor,
                                            std::span<const std::int64_t> limits);

}  // namespace tidekv
