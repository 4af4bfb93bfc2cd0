// A loop over registers, written out in full: an array of them stays in registers only so.
#pragma once

#if defined(__clang__)
#define TIDEKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TIDEKV_UNROLL _Pragma("GCC unroll 16")
#endif
