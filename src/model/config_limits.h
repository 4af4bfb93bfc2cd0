// What the fields of a model's description may hold, whatever the file.
//
// Wide enough for any model, and such that no product of them leaves int64: the largest,
// positions * layers * heads * head_dim * 8 bytes, is 2^58.
#pragma once

#include "base/field_reader.h"

namespace tidekv::limits {

inline constexpr IntRange kLayers = {1, 1024};
inline constexpr IntRange kHiddenDim = {1, 1 << 18};
inline constexpr IntRange kFfnDim = {1, 1 << 20};
inline constexpr IntRange kHeads = {1, 1024};
inline constexpr IntRange kHeadDim = {2, 256};
inline constexpr IntRange kVocab = {1, 1 << 24};
inline constexpr IntRange kPositions = {1, 1 << 27};
inline constexpr NumberRange kNormEps = {1e-12, 0.1};
inline constexpr NumberRange kTheta = {1.0, 1e12};
inline constexpr NumberRange kFactor = {1.0, 1e6};

}  // namespace tidekv::limits
