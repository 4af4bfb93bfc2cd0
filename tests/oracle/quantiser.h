// KIVI's quantiser from its formula: m = min, s = (max - min) / (2^b - 1), code = (x - m) / s
// rounded half to even; 0 where s is 0.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/host_tensor.h"

namespace tidekv::oracle {

struct Group {
  double scale = 0;  // as stored in the type of the elements
  double minimum = 0;
};

// Of the elements of one group, whose type is `dtype`.
Group group_of(const std::vector<double>& elements, std::int64_t bits, DType dtype);

// (x - m) / s before it is rounded and cut off at 0 and 2^bits - 1; 0 where s is 0.
double steps_of(double x, const Group& group);

// The nearest whole number, ties to even, from 0 to 2^bits - 1.
std::int64_t code_of(double steps, std::int64_t bits);

// Codes of rows [rows, num_codes] from words [rows, words] i32, the lowest bits first.
std::vector<std::vector<std::int64_t>> unpacked(const HostTensor& words, std::int64_t num_codes,
                                                std::int64_t bits);

}  // namespace tidekv::oracle
