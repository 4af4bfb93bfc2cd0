#!/usr/bin/env python3
"""Writes tests/data/quantised_blocks: blocks of every quantised type and what gguf reads in them.

Usage: make_quantised_blocks.py [OUT]   (a second); see README.md here.
"""
import os
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Type, number of blocks, byte offsets of its F16 scales and minima.
TYPES = (("Q8_0", 256, (0,)), ("Q4_0", 256, (0,)), ("Q4_1", 256, (0, 2)), ("Q5_0", 256, (0,)),
         ("Q5_1", 256, (0, 2)), ("Q4_K", 28, (0, 2)), ("Q5_K", 28, (0, 2)), ("Q6_K", 28, (208,)))
# +0, -0, the least and the greatest subnormal of either sign, the least normal, 1, -1, the greatest.
NOTABLE_F16 = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00,
                        0xBC00, 0x7BFF, 0xFBFF], dtype="<u2")


def finite_f16(rng, count, shift):
    """Bit patterns of `count` finite F16: the notable ones, rotated by `shift`, then random ones."""
    bits = rng.randint(0, 0x10000, count).astype("<u2")
    bits[(bits & 0x7C00) == 0x7C00] &= 0xBFFF  # infinity and NaN lose the top exponent bit
    bits[:len(NOTABLE_F16)] = np.roll(NOTABLE_F16, shift)
    return bits


def payload_bytes(rng, count, size):
    """[count, size]: in 256 blocks every byte of a block takes every value once."""
    columns = [rng.permutation(256)[:count] for _ in range(size)]
    payload = np.stack(columns, axis=1).astype(np.uint8)
    payload[-1], payload[-2] = 0x00, 0xFF
    return payload


def make_blocks(rng, name, count, scale_offsets):
    block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]
    blocks = payload_bytes(rng, count, block_bytes)
    for i, offset in enumerate(scale_offsets):
        blocks[:, offset:offset + 2] = finite_f16(rng, count, 5 * i).view(np.uint8).reshape(-1, 2)
    return blocks


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/data/quantised_blocks")
    os.makedirs(out, exist_ok=True)
    for seed, (name, count, scale_offsets) in enumerate(TYPES):
        blocks = make_blocks(np.random.RandomState(seed), name, count, scale_offsets)
        values = dequantize(blocks, GGMLQuantizationType[name])
        assert values.dtype == np.float32 and np.isfinite(values).all()
        blocks.tofile(os.path.join(out, f"{name.lower()}.blocks"))
        values.astype("<f4").tofile(os.path.join(out, f"{name.lower()}.f32"))
        print(name, blocks.shape, values.shape, "max", np.abs(values).max())


if __name__ == "__main__":
    main()
