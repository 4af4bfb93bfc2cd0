// How a layer's budget is split over its KV heads (Ada-KV).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidekv {

// `counts` [heads]: how many of a layer's best heads * base candidates each head has. Returns
// (1 - even_share) * count + even_share * base for each head, rounded so that the sum is
// heads * base: what rounding down leaves goes to the largest remainders, of equal ones to the
// lower head. No head gets more than `limit`; limit >= base.
std::vector<std::int64_t> split_over_heads(std::span<const std::int32_t> counts, double even_share,
                                           std::int64_t base, std::int64_t limit);

}  // namespace tidekv
