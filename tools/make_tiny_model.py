#!/usr/bin/env python3
"""Writes a toy Llama model with seeded random weights as a Hugging Face folder.

Needs numpy only. The folder holds config.json, generation_config.json, tokenizer.json and
model.safetensors, or with --shards N > 1 the shards and model.safetensors.index.json. The same
arguments always give the same bytes.

The models in tests/data/models come from `make_tiny_model.py --preset NAME OUT`, NAME being toy2,
toy-untied-llama3 or toy-f16; the options below describe any other model.
"""
import argparse
import json
import math
import os
import struct

import numpy as np

NEEDLE_TOKENIZER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "needle",
                                "tokenizer.json")
SPECIAL = ("<|begin_of_text|>", "<|end_of_text|>", "<|pad|>")
SPLIT_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                 r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DTYPES = {"bf16": ("BF16", "bfloat16"), "f16": ("F16", "float16"), "f32": ("F32", "float32")}

PRESETS = {
    # Tied, grouped heads, explicit head_dim that is not hidden / heads, Transformers 4 config.
    "toy2": ["--layers", "2", "--hidden", "48", "--heads", "4", "--kv-heads", "2", "--head-dim", "32",
             "--ffn", "72", "--dtype", "bf16", "--tied", "--config-style", "4", "--seed", "1"],
    # Untied, scaled RoPE, sizes no vector length divides, three shards, Transformers 5 config.
    "toy-untied-llama3": ["--layers", "2", "--hidden", "24", "--heads", "6", "--kv-heads", "2",
                          "--head-dim", "10", "--ffn", "88", "--dtype", "f32", "--rope", "llama3",
                          "--config-style", "5", "--shards", "3", "--seed", "2"],
    # One KV head per query head, head_dim left for the reader to derive, F16 weights.
    "toy-f16": ["--layers", "3", "--hidden", "40", "--heads", "2", "--kv-heads", "2", "--ffn", "64",
                "--dtype", "f16", "--tied", "--config-style", "4", "--theta", "500000", "--seed", "3"],
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="folder to write; made if missing")
    parser.add_argument("--preset", choices=sorted(PRESETS))
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--head-dim", type=int, help="default: hidden / heads, and not written down")
    parser.add_argument("--ffn", type=int, default=96)
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bf16")
    parser.add_argument("--tied", action="store_true", help="the output matrix is the embedding")
    parser.add_argument("--rope", choices=("default", "llama3"), default="default")
    parser.add_argument("--theta", type=float, default=10000.0)
    parser.add_argument("--rope-factor", type=float, default=8.0, help="llama3 only")
    parser.add_argument("--rope-original", type=int, default=512, help="llama3 only")
    parser.add_argument("--config-style", type=int, choices=(4, 5), default=4,
                        help="major version of Transformers whose config.json is written")
    parser.add_argument("--max-positions", type=int, default=4096)
    parser.add_argument("--tokenizer", choices=("bytes", "needle"), default="bytes")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    first = parser.parse_args()
    if not first.preset:
        return first
    return parser.parse_args(PRESETS[first.preset] + [first.out])


def byte_symbols():
    """The 256 printable characters that stand for bytes in a byte-level vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    symbols, spare = {}, 0x100
    for byte in range(256):
        symbols[byte] = chr(byte) if byte in printable else chr(spare)
        spare += byte not in printable
    return symbols


def byte_tokenizer():
    """Three special tokens, then one token a byte: id 3 + byte. No merges."""
    vocab = {token: i for i, token in enumerate(SPECIAL)}
    vocab.update({symbol: 3 + byte for byte, symbol in byte_symbols().items()})
    bos = SPECIAL[0]
    lead = [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": token, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for i, token in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": SPLIT_PATTERN}, "behavior": "Isolated",
             "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": False}]},
        "post_processor": {"type": "TemplateProcessing", "single": lead,
                           "pair": lead + [{"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {bos: {"id": bos, "ids": [0], "tokens": [bos]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": []},
    }


def rope_fields(args):
    fields = {"rope_type": args.rope}
    if args.rope == "llama3":
        fields.update(factor=args.rope_factor, low_freq_factor=1.0, high_freq_factor=4.0,
                      original_max_position_embeddings=args.rope_original)
    return fields


def config(args, vocab_size):
    out = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": args.hidden, "intermediate_size": args.ffn,
        "num_hidden_layers": args.layers, "num_attention_heads": args.heads,
        "num_key_value_heads": args.kv_heads,
        "hidden_act": "silu", "max_position_embeddings": args.max_positions,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": args.tied,
        "attention_bias": False, "mlp_bias": False, "vocab_size": vocab_size,
        "bos_token_id": 0, "eos_token_id": 1,
    }
    if args.head_dim:
        out["head_dim"] = args.head_dim
    name = DTYPES[args.dtype][1]
    if args.config_style == 5:
        out["rope_parameters"] = {"rope_theta": args.theta, **rope_fields(args)}
        out["dtype"] = name
    else:
        out["rope_theta"] = args.theta
        out["rope_scaling"] = None if args.rope == "default" else rope_fields(args)
        out["torch_dtype"] = name
    return out


def weights(args, vocab_size):
    """Name to float32 array, in the order of the forward pass.

    RandomState's stream is frozen, so a seed means the same weights with every numpy.
    """
    rng = np.random.RandomState(args.seed)
    head_dim = args.head_dim or args.hidden // args.heads
    q_dim, kv_dim = args.heads * head_dim, args.kv_heads * head_dim

    def matrix(rows, columns, gain=1.0):
        return (rng.standard_normal((rows, columns)) * gain / math.sqrt(columns)).astype(np.float32)

    def norm():
        return (1.0 + 0.2 * rng.standard_normal(args.hidden)).astype(np.float32)

    out = {"model.embed_tokens.weight":
           (0.5 * rng.standard_normal((vocab_size, args.hidden))).astype(np.float32)}
    for layer in range(args.layers):
        prefix = f"model.layers.{layer}."
        out[prefix + "input_layernorm.weight"] = norm()
        out[prefix + "self_attn.q_proj.weight"] = matrix(q_dim, args.hidden, 1.5)
        out[prefix + "self_attn.k_proj.weight"] = matrix(kv_dim, args.hidden, 1.5)
        out[prefix + "self_attn.v_proj.weight"] = matrix(kv_dim, args.hidden)
        out[prefix + "self_attn.o_proj.weight"] = matrix(args.hidden, q_dim)
        out[prefix + "post_attention_layernorm.weight"] = norm()
        out[prefix + "mlp.gate_proj.weight"] = matrix(args.ffn, args.hidden)
        out[prefix + "mlp.up_proj.weight"] = matrix(args.ffn, args.hidden)
        out[prefix + "mlp.down_proj.weight"] = matrix(args.hidden, args.ffn)
    out["model.norm.weight"] = norm()
    if not args.tied:
        out["lm_head.weight"] = matrix(vocab_size, args.hidden)
    return out


def encode(array, dtype):
    """Little-endian bytes of a float32 array in `dtype`, rounded to nearest, ties to even."""
    if dtype == "f32":
        return array.astype("<f4").tobytes()
    if dtype == "f16":
        return array.astype("<f2").tobytes()
    bits = array.astype("<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def write_safetensors(path, tensors, dtype):
    """Header length, JSON header padded with spaces to 8 bytes, then the data back to back."""
    header, chunks, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, array in tensors.items():
        data = encode(array, dtype)
        header[name] = {"dtype": DTYPES[dtype][0], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(data)]}
        chunks.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))
    return offset


def write_weights(args, tensors):
    if args.shards == 1:
        write_safetensors(os.path.join(args.out, "model.safetensors"), tensors, args.dtype)
        return
    names = list(tensors)
    per_shard = -(-len(names) // args.shards)
    weight_map, total = {}, 0
    for shard in range(args.shards):
        file = f"model-{shard + 1:05d}-of-{args.shards:05d}.safetensors"
        part = names[shard * per_shard:(shard + 1) * per_shard]
        total += write_safetensors(os.path.join(args.out, file), {n: tensors[n] for n in part},
                                   args.dtype)
        weight_map.update({name: file for name in part})
    write_json(args, "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))})


def write_json(args, name, value, indent=2):
    with open(os.path.join(args.out, name), "w", encoding="utf-8", newline="\n") as file:
        json.dump(value, file, indent=indent, ensure_ascii=False)
        file.write("\n")


def main():
    args = parse_arguments()
    os.makedirs(args.out, exist_ok=True)
    if args.tokenizer == "needle":
        with open(NEEDLE_TOKENIZER, encoding="utf-8") as file:
            tokenizer = json.load(file)
    else:
        tokenizer = byte_tokenizer()
    vocab_size = len(tokenizer["model"]["vocab"])
    write_json(args, "tokenizer.json", tokenizer, indent=None)
    write_json(args, "config.json", config(args, vocab_size))
    write_json(args, "generation_config.json",
               {"bos_token_id": 0, "eos_token_id": [1, 2] if args.config_style == 5 else 1})
    write_weights(args, weights(args, vocab_size))


if __name__ == "__main__":
    main()
