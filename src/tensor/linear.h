// What a linear map is made of.
#pragma once

namespace tidekv {

// A projection: rows times weight^T, plus the bias. Without one that view has no rows.
template <typename View>
struct Linear {
  View weight;     // [out, in]
  View bias = {};  // [1, out]
};

}  // namespace tidekv
