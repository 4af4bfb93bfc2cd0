#!/usr/bin/env python3
"""Writes toy models into tests/data/models: folders by Transformers, GGUF files by gguf.

Usage: make_tiny_models.py [OUT]   (seconds); see README.md here.
"""
import glob
import json
import os
import sys

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.torch import load_file
from transformers import (AutoConfig, AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config,
                          Qwen3Config)

import gguf_file

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import make_tiny_model  # noqa: E402  (found only now)

MODELS_FOLDER = os.path.join(ROOT, "tests", "data", "models")
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
MERGES = ("t h", "th e", "Ġ the", "i n", "e r")
VOCAB_SIZE = 3 + 256 + len(MERGES)
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 512}


def sizes(hidden, heads, kv_heads, ffn, **others):
    return {"vocab_size": VOCAB_SIZE, "hidden_size": hidden, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "intermediate_size": ffn, "num_hidden_layers": 2,
            "max_position_embeddings": 4096, "bos_token_id": 0, "eos_token_id": 1,
            "tie_word_embeddings": False, "rms_norm_eps": 1e-5, **others}


# Name -> configuration, type of the folder's weights, type of the GGUF file's.
MODELS = {
    "toy-qwen2": (Qwen2Config(**sizes(48, 4, 2, 64, tie_word_embeddings=True, rms_norm_eps=1e-6)),
                  "BF16", "BF16"),
    "toy-qwen3": (Qwen3Config(**sizes(40, 4, 2, 56, head_dim=16, rms_norm_eps=1e-6)), "F16", "F16"),
    "toy-mistral": (MistralConfig(**sizes(24, 3, 1, 40, head_dim=8, sliding_window=None)),
                    "F32", "F32"),
    "toy-llama2": (LlamaConfig(**sizes(32, 4, 4, 48)), "F16", "F16"),
    "toy-biased": (LlamaConfig(**sizes(40, 4, 2, 56, tie_word_embeddings=True, attention_bias=True,
                                       mlp_bias=True)), "BF16", "F32"),
    "toy-rope-freqs": (LlamaConfig(**sizes(48, 3, 1, 56, rope_parameters=LLAMA3_ROPE)),
                       "F16", "F16"),
    "toy-linear-rope": (LlamaConfig(**sizes(32, 2, 1, 40, rope_parameters={
        "rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0})), "BF16", "BF16"),
    "toy-odd-head": (LlamaConfig(**sizes(36, 3, 3, 52, head_dim=10)), "F16", "F16"),
}
SPLIT = {"toy-linear-rope": 9}  # tensors in a file
# Folders by tools/make_tiny_model.py, and the type of the GGUF file of the same weights. None of
# toy-untied-llama3: with rope_freqs one of its frequencies would be a float32 step off the folder's.
FOLDERS = {"toy2": "BF16", "toy-f16": "F16"}

# GGUF files alone. Every simple type, and every K type, multiplies something.
QUANTISED = {
    "toy-quantised": LlamaConfig(**sizes(64, 4, 2, 96, tie_word_embeddings=True)),
    "toy-quantised-qwen2": Qwen2Config(**sizes(32, 2, 1, 64, rms_norm_eps=1e-6)),
    "toy-k-quantised": LlamaConfig(**sizes(256, 4, 2, 96, num_hidden_layers=1, head_dim=16,
                                           tie_word_embeddings=True)),
}
SIMPLE_TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
K_TYPES = dict(zip(MATRICES, ("Q4_K", "Q5_K", "Q6_K", "Q4_0", "Q4_K", "Q5_K", "Q5_0")))
# K type -> offsets of its F16 fields; the minimum's scale over the scale, for a mean of nearly zero;
# standard deviation of a value over the scale, the other bytes being random.
K_BLOCKS = {"Q4_K": ((0, 2), 7.5, 257.0), "Q5_K": ((0, 2), 15.5, 524.0),
            "Q6_K": ((208,), None, 1366.0)}


def tokenizer():
    """make_tiny_model.py's, with a few merges, which GGUF files cannot be without."""
    value = make_tiny_model.byte_tokenizer()
    for merge in MERGES:
        value["model"]["vocab"][merge.replace(" ", "")] = len(value["model"]["vocab"])
    value["model"]["merges"] = list(MERGES)
    return value


def random_weights(config, seed, dtype):
    """Transformers name -> float32 array of values that `dtype` holds exactly.

    RandomState's stream is frozen, so a seed means the same weights with every numpy.
    """
    rng = np.random.RandomState(seed)
    weights = {}
    for name, tensor in AutoModelForCausalLM.from_config(config).state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = rng.standard_normal(tuple(tensor.shape))
        if name.endswith("norm.weight"):
            values = 1.0 + 0.2 * values
        elif name.endswith(".bias"):
            values *= 0.3
        elif name == "model.embed_tokens.weight":
            values *= 0.5
        else:
            gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
            values *= gain / np.sqrt(tensor.shape[1])
        weights[name] = torch.from_numpy(values).to(dtype).float().numpy()
    return weights


def k_blocks(rng, dtype, shape):
    """Random valid blocks, which the gguf package cannot make of weights, with the size of weights
    of `shape`: [rows, bytes]."""
    length, size = GGML_QUANT_SIZES[GGMLQuantizationType[dtype]]
    offsets, minimum, deviation = K_BLOCKS[dtype]
    blocks = rng.randint(0, 256, (shape[0], shape[1] // length, size)).astype(np.uint8)
    scale = rng.uniform(0.7, 1.3, blocks.shape[:2]) / np.sqrt(shape[1]) / deviation
    for offset, factor in zip(offsets, (1.0, minimum)):
        f16 = (scale * factor).astype("<f2")[..., None]
        blocks[:, :, offset:offset + 2] = f16.view(np.uint8)
    return blocks.reshape(shape[0], -1)


def simple_type(name, shape):
    """Another type for each matrix of a layer, and another order in the next layer."""
    parts = name.split(".")
    if parts[0] != "blk":
        return "Q8_0" if parts[0] == "token_embd" else "Q5_1"
    return SIMPLE_TYPES[(MATRICES.index(parts[2]) + 2 * int(parts[1])) % len(SIMPLE_TYPES)]


def k_type(rng):
    def choose(name, shape):
        dtype = "Q6_K" if name == "token_embd.weight" else K_TYPES[name.split(".")[2]]
        return (dtype, k_blocks(rng, dtype, shape)) if dtype in K_BLOCKS else dtype
    return choose


def write_folder(out, config, weights, dtype):
    model = AutoModelForCausalLM.from_config(config).to(dtype)
    missing, unexpected = model.load_state_dict(
        {name: torch.from_numpy(values).to(dtype) for name, values in weights.items()},
        strict=False)
    assert not unexpected and missing in ([], ["lm_head.weight"])
    model.tie_weights()
    model.save_pretrained(out)
    os.chmod(os.path.join(out, "model.safetensors"), 0o644)
    write_tokenizer(out)


def write_tokenizer(out):
    with open(os.path.join(out, "tokenizer.json"), "w", encoding="utf-8", newline="\n") as file:
        json.dump(tokenizer(), file, ensure_ascii=False)
        file.write("\n")


def read_folder(folder):
    """Configuration, weights as float32 arrays, and tokenizer of a folder that is there."""
    weights = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.safetensors"))):
        weights.update({name: values.float().numpy() for name, values in load_file(path).items()})
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        return AutoConfig.from_pretrained(folder), weights, json.load(file)


def write_gguf(out, name, config, weights, tokens, gguf_type):
    gguf_file.write(os.path.join(out, f"{name}.gguf"), config, weights, tokens, gguf_type,
                    SPLIT.get(name, 0))
    stored = gguf_file.read_weights(gguf_paths(out, name), config)
    assert all(np.array_equal(stored[key], values) for key, values in weights.items())


def gguf_paths(out, name):
    """Of a model that is written: its file, or the files of a split one."""
    return sorted(glob.glob(os.path.join(glob.escape(out), f"{name}.gguf")) or
                  glob.glob(os.path.join(glob.escape(out), f"{name}-*-of-*.gguf")))


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else MODELS_FOLDER
    for seed, (name, (config, dtype, gguf_type)) in enumerate(MODELS.items()):
        weights = random_weights(config, seed, DTYPES[dtype])
        write_folder(os.path.join(out, name), config, weights, DTYPES[dtype])
        write_gguf(out, name, config, weights, tokenizer(), gguf_type)
    for name, gguf_type in FOLDERS.items():
        write_gguf(out, name, *read_folder(os.path.join(MODELS_FOLDER, name)), gguf_type)
    for seed, (name, config) in enumerate(QUANTISED.items(), start=20):
        weights = random_weights(config, seed, torch.float32)
        types = k_type(np.random.RandomState(seed)) if "-k-" in name else simple_type
        gguf_file.write(os.path.join(out, f"{name}.gguf"), config, weights, tokenizer(), types)


if __name__ == "__main__":
    main()
