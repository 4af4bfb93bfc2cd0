// How far numbers are from those of a reference: rows, and distributions over a vocabulary. Pure,
// in double; equal inputs give exactly 0, and a cosine of exactly 1.
#pragma once

#include <span>
#include <vector>

#include "tidekv/fidelity.h"

namespace tidekv {

// |row - reference| / |reference| and the cosine. Of a reference of zeros alone: infinity and 0.
Drift row_drift(std::span<const double> row, std::span<const double> reference);

// Natural logarithms of the probabilities.
std::vector<double> log_softmax(std::span<const float> logits);

// Sum of p log(p / q), in nats.
double kl_divergence(std::span<const double> log_p, std::span<const double> log_q);

// Mean of the divergences of p and q from their mean, in nats: 0 to log 2.
double js_divergence(std::span<const double> log_p, std::span<const double> log_q);

// Index of the largest, the lowest of several.
std::size_t likeliest(std::span<const double> log_p);

}  // namespace tidekv
