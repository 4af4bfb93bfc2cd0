// The CPU backend, in variants that differ in their kernels only.
//
// portable runs anywhere; avx2 needs AVX2, FMA and F16C; avx512 needs AVX-512 F, BW, VL and DQ;
// avx512_bf16 multiplies BF16 in pairs and needs AVX-512 BF16 too. Within a variant every bit is
// repeatable; between two the last bits differ, because one fuses multiply and add, or rounds two
// products one after the other.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace tidekv::cpu {

std::unique_ptr<Backend> create_portable(const BackendOptions& options);
// Only where avx2_available().
std::unique_ptr<Backend> create_avx2(const BackendOptions& options);
bool avx2_available();
// Only where avx512_available().
std::unique_ptr<Backend> create_avx512(const BackendOptions& options);
bool avx512_available();
// Only where avx512_bf16_available().
std::unique_ptr<Backend> create_avx512_bf16(const BackendOptions& options);
bool avx512_bf16_available();
// Where pairs are multiplied at the rate of single f32 numbers: on AMD's processors. Intel's
// without AMX take twice as long for a pair, which makes f32 the faster of the two.
bool avx512_bf16_suits();

// Scratch of all threads together, for any variant: at most 1 MiB a thread.
// head_dim is at most 256.
std::int64_t workspace_bytes(int num_threads, std::int64_t head_dim);

}  // namespace tidekv::cpu
