// Lists of numbers as llama-bench takes them: commas, and ranges first-last, first-last+step,
// first-last*factor.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tidekv/result.h"
#include "values.h"

namespace tidekv::cli {

// "512,1K,2048-8192*2": 512, 1024, 2048, 4096, 8192. Every number lies in `range`; a list has at
// most 1,000.
Result<std::vector<std::int64_t>> parse_number_list(std::string_view text, IntegerRange range);

// "512,128".
Result<std::pair<std::int64_t, std::int64_t>> parse_number_pair(std::string_view text,
                                                                IntegerRange range);

// The parts of `text` between commas; always at least one.
std::vector<std::string_view> split_at_commas(std::string_view text);

}  // namespace tidekv::cli
