// What libFuzzer calls with bytes of its own making, and replay.cc with those of the corpus.
#pragma once

#include <cstddef>
#include <cstdint>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
