// The CPU backend, in two variants that differ in their kernels only.
//
// portable runs anywhere; avx512 needs AVX-512 F, BW, VL and DQ. Within a variant every bit is
// repeatable; between the two the last bits differ, because avx512 fuses multiply and add.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace tidekv::cpu {

std::unique_ptr<Backend> create_portable(const BackendOptions& options);
// Only where avx512_available().
std::unique_ptr<Backend> create_avx512(const BackendOptions& options);
bool avx512_available();

// Scratch of all threads together, for either variant: at most 1 MiB a thread.
// head_dim is at most 256.
std::int64_t workspace_bytes(int num_threads, std::int64_t head_dim);

}  // namespace tidekv::cpu
