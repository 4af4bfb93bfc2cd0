#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets into corpus/: tiny valid files, and broken ones.

Deterministic: running it again changes nothing. Files that a fuzzer found (found_*) are left alone.
"""

import base64
import json
import math
import pathlib
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools" / "reference"))
import chat_language_cases
import chat_templates

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def safetensors_file(header, data_bytes):
    text = header if isinstance(header, str) else compact(header)
    raw = text.encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + bytes(i % 251 for i in range(data_bytes))


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors():
    valid = {
        "__metadata__": {"format": "pt"},
        "scalar": tensor("F32", [], 0, 4),
        "norm": tensor("F16", [4], 4, 12),
        "embed": tensor("BF16", [3, 2], 12, 24),
        "empty": tensor("BF16", [0, 7], 24, 24),
        "ids": tensor("I64", [1], 24, 32),
        "packed": tensor("F4", [2, 3], 32, 35),
    }
    write("safetensors", "valid", safetensors_file(valid, 35))
    write("safetensors", "valid_no_tensors", safetensors_file({}, 0))
    write("safetensors", "valid_leading_space", safetensors_file(" \t\r\n" + compact(valid), 35))
    write("safetensors", "overlap",
          safetensors_file({"a": tensor("F16", [2], 0, 4), "b": tensor("F16", [2], 2, 6)}, 6))
    write("safetensors", "hole",
          safetensors_file({"a": tensor("F16", [1], 0, 2), "b": tensor("F16", [1], 4, 6)}, 6))
    write("safetensors", "rest", safetensors_file({"a": tensor("F16", [1], 0, 2)}, 4))
    write("safetensors", "size_wraps", safetensors_file({"a": tensor("F32", [2**62 + 1], 0, 4)}, 4))
    write("safetensors", "offset_wraps",
          safetensors_file({"a": tensor("F32", [8], 2**64 - 32, 0)}, 32))
    write("safetensors", "unaligned",
          safetensors_file({"a": tensor("U8", [1], 0, 1), "b": tensor("F32", [1], 1, 5)}, 5))
    write("safetensors", "unknown_dtype", safetensors_file({"a": tensor("F128", [1], 0, 16)}, 16))
    write("safetensors", "duplicate",
          safetensors_file('{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},'
                           '"a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}}', 4))
    write("safetensors", "deep", safetensors_file('{"a":' + "[" * 500, 0))
    write("safetensors", "header_too_long", struct.pack("<Q", 2**63) + b"{}")
    write("safetensors", "git_lfs",
          "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n")
    write("safetensors", "gguf", b"GGUF" + struct.pack("<IQQ", 3, 1, 1))
    write("safetensors", "zip", b"PK\x03\x04\x00\x00\x08\x08\x00\x00archive/data.pkl")


# Value types and tensor types of GGUF.
U8, U16, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 2, 4, 5, 6, 7, 8, 9, 10
T_F32, T_Q8_0, T_IQ2_XS, T_Q4_K = 0, 8, 17, 12


def gguf_string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_field(key, kind, value):
    return gguf_string(key) + struct.pack("<I", kind) + value


def gguf_array(kind, count, elements):
    return struct.pack("<IQ", kind, count) + elements


def gguf_tensor(name, dims, kind, offset):
    return (gguf_string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
            + struct.pack("<IQ", kind, offset))


def gguf_file(fields=(), tensors=(), data_bytes=0, version=3, alignment=32):
    out = (b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(fields)) + b"".join(fields)
           + b"".join(tensors))
    return out + bytes(-len(out) % alignment) + bytes(i % 251 for i in range(data_bytes))


def gguf():
    tokens = [gguf_string(text) for text in ("<s>", "a", "b", "ab", "")]
    fields = [
        gguf_field("general.architecture", STRING, gguf_string("llama")),
        gguf_field("llama.block_count", U32, struct.pack("<I", 1)),
        gguf_field("llama.rope.freq_base", F32, struct.pack("<f", 10000.0)),
        gguf_field("tokenizer.ggml.add_bos_token", BOOL, b"\x01"),
        gguf_field("tokenizer.ggml.tokens", ARRAY, gguf_array(STRING, 5, b"".join(tokens))),
        gguf_field("tokenizer.ggml.scores", ARRAY,
                   gguf_array(F32, 2, struct.pack("<2f", 0.5, float("nan")))),
        gguf_field("tokenizer.ggml.token_type", ARRAY, gguf_array(I32, 2, struct.pack("<2i", 1, -1))),
        gguf_field("wide", ARRAY, gguf_array(U64, 1, struct.pack("<Q", 2**64 - 1))),
    ]
    tensors = [gguf_tensor("norm", [8], T_F32, 0), gguf_tensor("w", [32, 3], T_Q8_0, 32),
               gguf_tensor("k", [256], T_Q4_K, 160), gguf_tensor("iq", [256], T_IQ2_XS, 320)]
    write("gguf", "valid_2", gguf_file(fields, tensors, 394, version=2))
    write("gguf", "valid_3", gguf_file(fields, tensors, 394))
    write("gguf", "valid_aligned", gguf_file(
        [gguf_field("general.alignment", U32, struct.pack("<I", 64))], tensors[:1], 32, alignment=64))
    write("gguf", "valid_split", gguf_file(
        [gguf_field("split.no", U16, struct.pack("<H", 0)),
         gguf_field("split.count", U16, struct.pack("<H", 2)),
         gguf_field("split.tensors.count", I32, struct.pack("<i", 1))], tensors[:1], 32))
    for name, version in [("version_1", 1), ("version_9", 9), ("big_endian", 3 << 24)]:
        write("gguf", name, gguf_file(version=version))
    for name, counts in [("tensor_count", (2**60, 0)), ("field_count", (0, 2**60))]:
        write("gguf", name, b"GGUF" + struct.pack("<IQQ", 3, *counts) + bytes(64))
    for name, value in [
            ("string_length", (STRING, struct.pack("<Q", 2**63))), ("type", (13, b"")),
            ("array_count", (ARRAY, gguf_array(F32, 2**60, b""))),
            ("array_wraps", (ARRAY, gguf_array(U64, 2**61, b""))),
            ("array_of_arrays", (ARRAY, gguf_array(ARRAY, 1, gguf_array(U8, 1, b"x")))),
            ("element_length", (ARRAY, gguf_array(STRING, 1, struct.pack("<Q", 2**64 - 8))))]:
        write("gguf", name, gguf_file([gguf_field("a", *value)], data_bytes=64))
    write("gguf", "duplicate_key", gguf_file([gguf_field("a", U8, b"1"), gguf_field("a", U8, b"2")]))
    for name, alignment in [("alignment_zero", 0), ("alignment_odd", 33)]:
        write("gguf", name, gguf_file(
            [gguf_field("general.alignment", U32, struct.pack("<I", alignment))]))
    for name, descriptions in [
            ("dims_none", [gguf_tensor("t", [], T_F32, 0)]),
            ("dims_many", [gguf_tensor("t", [1] * 5, T_F32, 0)]),
            ("dims_zero", [gguf_tensor("t", [0], T_F32, 0)]),
            ("size_wraps", [gguf_tensor("t", [2**62], T_F32, 0)]),
            ("elements_wrap", [gguf_tensor("t", [2**32, 2**32, 2], T_F32, 0)]),
            ("part_of_a_block", [gguf_tensor("t", [33], T_Q8_0, 0)]),
            ("offset_wraps", [gguf_tensor("t", [8], T_F32, 2**64 - 32)]),
            ("offset_unaligned", [gguf_tensor("t", [1], T_F32, 4)]),
            ("past_the_end", [gguf_tensor("t", [17], T_F32, 0)]),
            ("overlap", [gguf_tensor("a", [9], T_F32, 0), gguf_tensor("b", [1], T_F32, 32)]),
            ("duplicate_name", [gguf_tensor("a", [1], T_F32, 0), gguf_tensor("a", [1], T_F32, 32)]),
            ("unknown_type", [gguf_tensor("t", [1], 99, 0)])]:
        write("gguf", name, gguf_file([], descriptions, 64))


def u32(value):
    return U32, struct.pack("<I", value)


def f32(value):
    return F32, struct.pack("<f", value)


def text(value):
    return STRING, gguf_string(value)


def model_fields(architecture, changes):
    """Metadata of a model of one layer; a change to None takes a field out."""
    tokens = ("<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581a")
    fields = {
        "general.architecture": text(architecture),
        "*.block_count": u32(1), "*.context_length": u32(512), "*.embedding_length": u32(8),
        "*.feed_forward_length": u32(6), "*.attention.head_count": u32(2),
        "*.attention.head_count_kv": u32(1),
        "*.attention.layer_norm_rms_epsilon": f32(1e-5), "*.rope.freq_base": f32(10000.0),
        "tokenizer.ggml.model": text("llama"),
        "tokenizer.ggml.tokens": (ARRAY, gguf_array(
            STRING, len(tokens), b"".join(gguf_string(token) for token in tokens))),
        "tokenizer.ggml.scores": (ARRAY, gguf_array(
            F32, len(tokens), b"".join(struct.pack("<f", -i) for i in range(len(tokens))))),
        "tokenizer.ggml.token_type": (ARRAY, gguf_array(
            I32, len(tokens), struct.pack("<8i", UNKNOWN, CONTROL, CONTROL, *[NORMAL] * 5))),
        "tokenizer.ggml.bos_token_id": u32(1), "tokenizer.ggml.eos_token_id": u32(2),
        "tokenizer.chat_template": text("{{ bos_token }}{% for m in messages %}{{ m['content'] }}"
                                        "{% endfor %}"),
        **changes,
    }
    return [gguf_field(key.replace("*", architecture), *value) for key, value in fields.items()
            if value is not None]


# Of a layer, dims innermost first; with head_dim 4.
LAYER = {"attn_norm.weight": [8], "attn_q.weight": [8, 8], "attn_k.weight": [8, 4],
         "attn_v.weight": [8, 4], "attn_output.weight": [8, 8], "ffn_norm.weight": [8],
         "ffn_gate.weight": [8, 6], "ffn_up.weight": [8, 6], "ffn_down.weight": [6, 8]}


def model_file(architecture="llama", changes=(), tensors=()):
    """A whole model, every weight one; a tensor changed to None is left out."""
    shapes = {"token_embd.weight": [8, 8], "output_norm.weight": [8],
              **{f"blk.0.{name}": dims for name, dims in LAYER.items()}, **dict(tensors)}
    descriptions, data = [], b""
    for name, dims in shapes.items():
        if dims is not None:
            descriptions.append(gguf_tensor(name, dims, T_F32, len(data)))
            data += struct.pack("<f", 1.0) * math.prod(dims)
            data += bytes(-len(data) % 32)
    return gguf_file(model_fields(architecture, dict(changes)), descriptions) + data


def gguf_model():
    biases = {"blk.0.attn_q.bias": [8], "blk.0.attn_k.bias": [4], "blk.0.attn_v.bias": [4]}
    norms = {"blk.0.attn_q_norm.weight": [4], "blk.0.attn_k_norm.weight": [4]}
    valid = {
        "valid_llama": model_file(),
        "valid_untied": model_file(tensors={"output.weight": [8, 8]}),
        "valid_qwen2": model_file("qwen2", tensors=biases),
        "valid_qwen3": model_file("qwen3", {"*.attention.key_length": u32(4),
                                            "*.attention.value_length": u32(4)}, norms),
        "valid_linear_rope": model_file(changes={"*.rope.scaling.type": text("linear"),
                                                 "*.rope.scaling.factor": f32(4.0)}),
        "valid_old_linear_rope": model_file(changes={"*.rope.scale_linear": f32(2.0)}),
        "valid_rope_freqs": model_file(tensors={"rope_freqs.weight": [2]}),
        "valid_end_of_turn": model_file(changes={"tokenizer.ggml.eot_token_id": u32(1)}),
    }
    for name, data in valid.items():
        assert len(data) <= 4096  # replay cuts it at every byte
        write("gguf_model", name, data)
    large = 2**32 - 1
    changes = {
        "architecture": {"general.architecture": text("gemma2")},
        "architecture_number": {"general.architecture": u32(1)},
        "no_architecture": {"general.architecture": None},
        "architecture_zero": {"general.architecture": text("llama\0")},
        "no_layers": {"*.block_count": u32(0)}, "many_layers": {"*.block_count": u32(1024)},
        "too_many_layers": {"*.block_count": u32(large)},
        "layers_missing": {"*.block_count": None}, "layers_text": {"*.block_count": text("1")},
        "layers_array": {"*.block_count": (ARRAY, gguf_array(U32, 1, struct.pack("<I", 1)))},
        "no_heads": {"*.attention.head_count": u32(0), "*.attention.head_count_kv": u32(0)},
        "more_kv_heads": {"*.attention.head_count_kv": u32(4)},
        "kv_heads_no_divisor": {"*.attention.head_count": u32(4),
                                "*.attention.head_count_kv": u32(3)},
        "head_wider_than_model": {"*.attention.head_count": u32(16)},
        "odd_head": {"*.attention.key_length": u32(3)},
        "wide_head": {"*.attention.key_length": u32(large)},
        "other_value_width": {"*.attention.value_length": u32(8)},
        "largest": {"*.block_count": u32(1024), "*.context_length": u32(1 << 27),
                    "*.embedding_length": u32(1 << 18), "*.feed_forward_length": u32(1 << 20),
                    "*.attention.head_count": u32(1024), "*.attention.head_count_kv": u32(1024),
                    "*.attention.key_length": u32(256), "*.vocab_size": u32(1 << 24)},
        "huge_vocabulary": {"*.vocab_size": u32(large)},
        "small_vocabulary": {"*.vocab_size": u32(4)},
        "long_context": {"*.context_length": (U64, struct.pack("<Q", 2**64 - 1))},
        "eps_nan": {"*.attention.layer_norm_rms_epsilon": f32(float("nan"))},
        "eps_zero": {"*.attention.layer_norm_rms_epsilon": f32(0.0)},
        "theta_infinite": {"*.rope.freq_base": f32(float("inf"))},
        "theta_negative": {"*.rope.freq_base": f32(-1.0)},
        "rope_yarn": {"*.rope.scaling.type": text("yarn")},
        "linear_rope_no_factor": {"*.rope.scaling.type": text("linear")},
        "linear_rope_nan": {"*.rope.scaling.type": text("linear"),
                            "*.rope.scaling.factor": f32(float("nan"))},
        "sliding_window": {"*.attention.sliding_window": u32(128)},
        "experts": {"*.expert_count": u32(8)}, "unknown_key": {"*.logit_scale": f32(2.0)},
        "end_out_of_range": {"tokenizer.ggml.eos_token_id": u32(8)},
        "end_negative": {"tokenizer.ggml.eos_token_id": (I32, struct.pack("<i", -1))},
        "no_chat_template": {"tokenizer.chat_template": None},
        "chat_template_number": {"tokenizer.chat_template": u32(1)},
        "chat_template_broken": {"tokenizer.chat_template": text("{{ (")},
        "no_tokenizer": {"tokenizer.ggml.model": None},
        "split": {"split.count": (U16, struct.pack("<H", 2)), "split.no": (U16, b"\0\0")},
    }
    for name, change in changes.items():
        write("gguf_model", name, model_file(changes=change))
    tensors = {
        "no_embedding": {"token_embd.weight": None},
        "embedding_of_rank_3": {"token_embd.weight": [4, 2, 8]},
        "larger_embedding": {"token_embd.weight": [8, 9]},
        "smaller_embedding": {"token_embd.weight": [8, 7]},
        "wrong_shape": {"blk.0.attn_q.weight": [8, 4]},
        "missing_tensor": {"blk.0.ffn_up.weight": None},
        "bias_alone": {"blk.0.attn_q.bias": [8]},
        "bias_of_a_missing_tensor": {"blk.0.ffn_gate.bias": [6], "blk.0.ffn_gate.weight": None},
        "tensor_of_no_layer": {"blk.1.attn_norm.weight": [8]},
        "tensor_of_layer_minus_one": {"blk.-1.attn_norm.weight": [8]},
        "tensor_of_a_huge_layer": {"blk.99999999999999999999.attn_norm.weight": [8]},
        "unknown_tensor": {"blk.0.attn_sinks.weight": [2]},
        "rope_freqs_long": {"rope_freqs.weight": [3]},
        "rope_freqs_matrix": {"rope_freqs.weight": [2, 1]},
    }
    for name, change in tensors.items():
        write("gguf_model", name, model_file(tensors=change))


def shard_index():
    def index(shard):
        return compact({"metadata": {"total_size": 4}, "weight_map": {"a": shard, "b": shard}})

    write("shard_index", "valid", index("model-00001-of-00002.safetensors"))
    for name, shard in [("parent", "../m.safetensors"), ("absolute", "/etc/m.safetensors"),
                        ("inner", "x/m.safetensors"), ("hidden", ".safetensors"),
                        ("pickle", "pytorch_model.bin"), ("number", 1), ("null", None)]:
        write("shard_index", name, index(shard))
    write("shard_index", "empty_map", '{"weight_map":{}}')
    write("shard_index", "no_map", "{}")
    write("shard_index", "duplicate", '{"weight_map":{"a":"m.safetensors","a":"m.safetensors"}}')


def config():
    common = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 300,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-05, "tie_word_embeddings": True,
        "attention_bias": False, "mlp_bias": False,
    }
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    version_4 = {**common, "torch_dtype": "bfloat16", "eos_token_id": 1, "rope_theta": 10000.0,
                 "rope_scaling": llama3}
    version_5 = {**common, "dtype": "float16", "eos_token_id": [1, 2], "sliding_window": None,
                 "rope_parameters": {**llama3, "rope_theta": 10000.0}}
    write("config", "valid_4", compact(version_4))
    write("config", "valid_5", compact(version_5))
    write("config", "valid_generation",
          compact({**version_4, "rope_scaling": None}) + "\0" + compact({"eos_token_id": [1, 3]}))
    for name, change in [
            ("mistral", {"model_type": "mistral"}), ("bias", {"attention_bias": True}),
            ("window", {"sliding_window": 4096}), ("yarn", {"rope_scaling": {"rope_type": "yarn"}}),
            ("quantised", {"quantization_config": {"bits": 4}}), ("zero_heads",
            {"num_attention_heads": 0}), ("huge", {"hidden_size": 2**63}),
            ("negative_layers", {"num_hidden_layers": -1}), ("wrong_type", {"vocab_size": "300"}),
            ("odd_head", {"head_dim": 15}), ("two_thetas", {"rope_parameters": {"rope_theta": 5}}),
            ("eos_out_of_range", {"eos_token_id": [0, 300]})]:
        write("config", name, compact({**version_4, **change}))
    write("config", "duplicate", '{"hidden_size":64,"hidden_size":64}')
    write("config", "nan", '{"rms_norm_eps":NaN}')
    write("config", "overflow", '{"rope_theta":1e400}')
    write("config", "deep", '{"a":' + "[" * 500)


def byte_alphabet():
    """The 256 characters that stand for bytes in a byte-level vocabulary, in order of bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


def tokenizer_json(**changes):
    tokens = ["<s>", "</s>", *byte_alphabet(), "aa", "ab", "aab"]
    added = [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True} for i in range(2)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
             "ignore_merges": False, "vocab": {token: i for i, token in enumerate(tokens)},
             "merges": changes.pop("merges", ["a a", "a b", "a ab"])}
    model.update(changes.pop("model", {}))
    bos = {"id": "<s>", "ids": [0], "tokens": ["<s>"]}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    whole = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, text], "pair": [text],
            "special_tokens": {"<s>": bos}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": model,
    }
    whole.update(changes)
    return compact(whole)


def split_by(pattern):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
             "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, byte_level]}


def tokenizer():
    valid = tokenizer_json()
    assert len(valid.encode()) <= 4096  # replay cuts it at every byte
    write("tokenizer", "valid", valid)
    write("tokenizer", "valid_merge_pairs",
          tokenizer_json(merges=[["a", "a"], ["a", "b"], ["a", "ab"]]))
    write("tokenizer", "valid_split", tokenizer_json(
        pre_tokenizer=split_by(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+")))
    write("tokenizer", "text", valid + "\0<s> aab\n\n  12345 " + "a" * 40 + "\u00e9\U0001F600</s>")
    write("tokenizer", "slow_pattern", tokenizer_json(pre_tokenizer=split_by(r"(a+)+$")) + "\0" + "a" * 40 + "!")
    write("tokenizer", "broken_pattern", tokenizer_json(pre_tokenizer=split_by(r"(a")))
    write("tokenizer", "wordpiece", tokenizer_json(model={"type": "WordPiece"}))
    write("tokenizer", "no_bytes", tokenizer_json(model={"vocab": {"a": 0, "b": 1}}))
    write("tokenizer", "same_id", tokenizer_json(model={"vocab": {"a": 0, "b": 0}}))
    write("tokenizer", "huge_id", tokenizer_json(model={"vocab": {"a": 2**63, "b": 2**31}}))
    write("tokenizer", "negative_id", tokenizer_json(model={"vocab": {"a": -1}}))
    write("tokenizer", "unknown_merge", tokenizer_json(merges=["a zz"]))
    write("tokenizer", "merge_of_one", tokenizer_json(merges=["a"]))
    write("tokenizer", "normalizer", tokenizer_json(normalizer={"type": "NFKC"}))
    write("tokenizer", "duplicate", '{"model":{"vocab":{"a":0,"a":1}},"model":{}}')
    write("tokenizer", "deep", '{"model":{"vocab":' + "[" * 500)
    write("tokenizer", "not_an_object", "[]")


def chat_template():
    for name, template in chat_templates.FAMILIES.items():
        assert len(template.encode()) <= 4096  # replay cuts it at every byte
        write("chat_template", f"valid_{name}", template)
    valid = {
        "filters": chat_language_cases.FILTERS, "methods": chat_language_cases.METHODS,
        "operators": chat_language_cases.OPERATORS, "statements": chat_language_cases.STATEMENTS,
        "tests": chat_language_cases.TESTS, "white_space": chat_language_cases.WHITE_SPACE,
    }
    for name, templates in valid.items():
        size = 0
        for number, template in enumerate(templates):  # cuts them into files of at most 4 KB
            size += len(template.encode())
            part = size // 3000
            first = number == 0 or (size - len(template.encode())) // 3000 < part
            group = template if first else group + template
            assert len(group.encode()) <= 4096
            write("chat_template", f"valid_{name}_{part}", group)
    write("chat_template", "content", chat_templates.CHATML + "\0" + chat_templates.HOSTILE)
    write("chat_template", "damaged_content", chat_templates.QWEN3.encode() + b"\0\xff</think>\xe2\x82")
    for name, template in {
            "class": "{{ ''.__class__.__mro__ }}", "include": "{% include '/etc/passwd' %}",
            "deep": "{{ " + "(" * 5000, "deep_if": "{% if 1 %}" * 5000,
            "doubling": "{% set n = namespace(s='ab') %}{% for i in range(99) %}"
                        "{% set n.s = n.s + n.s %}{% endfor %}",
            "macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
            "huge_range": "{{ range(10 ** 18) | list }}", "overflow": "{{ 2 ** 62 * 4 }}",
            "long_loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
                         "{% endfor %}",
            "division": "{{ 1 // 0 }}", "open_string": "{{ 'a", "open_comment": "{# a",
            "open_raw": "{% raw %} a", "escape": "{{ '\\ud800' }}"}.items():
        write("chat_template", name, template)
    write("chat_template", "not_utf8", b"a\xff{{ b }}")


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def wire(number, value):
    """One field of a protocol buffers message: bytes, a whole number or a float."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    return varint(number << 3 | 2) + varint(len(value)) + value


NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def piece(text, score=0.0, kind=NORMAL):
    fields = wire(1, text if isinstance(text, bytes) else text.encode())
    fields += wire(2, score) if score else b""
    return wire(1, fields + (wire(3, kind) if kind != NORMAL else b""))


BASE_PIECES = [piece("<unk>", kind=UNKNOWN), piece("<s>", kind=CONTROL), piece("</s>", kind=CONTROL)]
WORDS = [piece(text, -float(i)) for i, text in enumerate(
    ["\u2581", "a", "b", "1", "\u00e9", "ab", "aab", "\u2581a", "\u2581ab", "\u2581\u2581"])]


def sentencepiece_model(pieces, trainer=wire(3, 2), normalizer=wire(3, 1) + wire(4, 0)):
    return b"".join(pieces) + wire(2, trainer) + wire(3, normalizer)


def charsmap(texts, rules):
    """A character map: single bytes to zero-terminated texts. A unit of its trie has a label, the
    way to its children or its value (exclusive or with its own place), and whether it has one."""
    units = [0] * 512
    units[0] = 256 << 10
    for leaf, (byte, text) in enumerate(rules.items(), start=1):
        at = 256 ^ byte
        units[at] = (at ^ leaf) << 10 | 1 << 8 | byte
        units[leaf] = 1 << 31 | texts.index(text.encode() + b"\0")
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + texts


def tokenizer_model():
    all_bytes = [piece(f"<0x{byte:02X}>", kind=BYTE) for byte in range(256)]
    valid = {
        "valid_bpe": sentencepiece_model(BASE_PIECES + WORDS),
        "valid_bpe_bytes": sentencepiece_model(BASE_PIECES + all_bytes + WORDS,
                                               trainer=wire(3, 2) + wire(35, 1)),
        "valid_user_defined": sentencepiece_model(
            BASE_PIECES + WORDS + [piece("aa", kind=USER_DEFINED), piece("unused", kind=UNUSED)]),
        "valid_unigram": sentencepiece_model(BASE_PIECES + WORDS, trainer=wire(3, 1),
                                             normalizer=wire(3, 1) + wire(4, 1)),
        "valid_charsmap": sentencepiece_model(
            BASE_PIECES + WORDS, trainer=wire(3, 1),
            normalizer=wire(2, charsmap(b"ab\0 \0", {ord("x"): "ab", ord("\n"): " "}))),
        "valid_ranks": ranks(),
    }
    for name, data in valid.items():
        assert len(data) <= 4096  # replay cuts it at every byte
        write("tokenizer_model", name, data)
    broken = {
        "no_unknown": sentencepiece_model(WORDS),
        "two_unknown": sentencepiece_model(BASE_PIECES + BASE_PIECES[:1] + WORDS),
        "twice": sentencepiece_model(BASE_PIECES + WORDS + WORDS),
        "empty_piece": sentencepiece_model(BASE_PIECES + [piece("")]),
        "damaged_piece": sentencepiece_model(BASE_PIECES + [piece(b"a\xff")]),
        "zero_piece": sentencepiece_model(BASE_PIECES + [piece("a\0b"), piece("\0")]),
        "nan_score": sentencepiece_model(BASE_PIECES + [piece("a", float("nan"))]),
        "infinite_score": sentencepiece_model(BASE_PIECES + [piece("a", float("inf"))],
                                              trainer=wire(3, 1)),
        "unknown_type": sentencepiece_model(BASE_PIECES + [piece("a", kind=9)]),
        "byte_misspelled": sentencepiece_model(BASE_PIECES + [piece("<0xG0>", kind=BYTE)]),
        "bytes_missing": sentencepiece_model(BASE_PIECES + WORDS, trainer=wire(3, 2) + wire(35, 1)),
        "long_piece": sentencepiece_model(BASE_PIECES + [piece("a" * 4000)]),
        "word_model": sentencepiece_model(BASE_PIECES + WORDS, trainer=wire(3, 3)),
        "whitespace_suffix": sentencepiece_model(BASE_PIECES, trainer=wire(3, 2) + wire(24, 1)),
        "no_escape": sentencepiece_model(BASE_PIECES, normalizer=wire(5, 0)),
        "no_trainer": b"".join(BASE_PIECES) + wire(3, b""),
        "no_normalizer": b"".join(BASE_PIECES) + wire(2, wire(3, 2)),
        "charsmap_short": sentencepiece_model(BASE_PIECES, normalizer=wire(2, b"\x08\0\0")),
        "charsmap_size": sentencepiece_model(BASE_PIECES,
                                             normalizer=wire(2, b"\xff\xff\xff\xff" + b"\0" * 9)),
        "charsmap_leads_out": sentencepiece_model(
            BASE_PIECES + WORDS, trainer=wire(3, 1),
            normalizer=wire(2, struct.pack("<II", 4, 2**32 - 1) + b"\0")),
        "charsmap_value_leads_out": sentencepiece_model(
            BASE_PIECES + WORDS, trainer=wire(3, 1),
            normalizer=wire(2, charsmap(b"ab\0", {ord("a"): "ab"})[:-3] + b"\0")),
        "score_as_text": b"".join(BASE_PIECES) + wire(1, wire(1, b"a") + wire(2, b"-1")),
        "piece_as_number": b"".join(BASE_PIECES) + wire(1, 7),
        "length_wraps": b"\x0a" + b"\xff" * 9 + b"\x01",
        "endless_number": b"\x0a" + b"\xff" * 20,
        "group": b"".join(BASE_PIECES) + b"\x0b\x0c",
        "ranks_hole": ranks().replace(b" 258\n", b" 2147483647\n"),
        "ranks_twice": ranks() + b"YWE= 300\n",
        "ranks_same": ranks() + b"eno= 258\n",
        "ranks_no_rank": ranks() + b"eno=\n",
        "ranks_not_base64": ranks() + b"e!o= 260\n",
        "ranks_empty_token": ranks() + b" 260\n",
        "ranks_negative": ranks() + b"eno= -1\n",
        "ranks_no_bytes": b"YWE= 0\n",
        "empty": b"",
        "text": b"not a tokenizer",
    }
    for name, data in broken.items():
        write("tokenizer_model", name, data)


def ranks():
    tokens = [bytes([byte]) for byte in range(256)] + [b"aa", b"ab", b"aab", b" a"]
    return b"".join(base64.b64encode(token) + b" %d\n" % i for i, token in enumerate(tokens))


def prompt_lines():
    valid = [
        {"prompt": "The sky is", "answer": "blue", "id": "a"},
        {"tokens": [1, 2, 258], "answer": ["x", "Y"], "id": 7, "prefix": " so"},
        {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": "caf\u00e9"}],
         "prefix": "It", "answer": None},
    ]
    write("prompt_lines", "valid", "".join(compact(line) + "\n" for line in valid))
    write("prompt_lines", "valid_crlf",
          "\r\n".join(compact(line) for line in valid) + "\r\n \t\r\n")
    write("prompt_lines", "valid_escapes",
          '{"prompt":"\\u0000\\n\\ud83d\\ude0a","answer":["\\u00e9"]}')
    broken = {
        "empty": "\n \n\r\n",
        "truncated": compact(valid[0]) + '\n{"prompt": "The',
        "array": '["prompt"]',
        "duplicate": '{"prompt":"a","prompt":"b"}',
        "two_prompts": '{"prompt":"a","tokens":[1]}',
        "no_prompt": '{"answer":"a"}',
        "unknown_key": '{"prompt":"a","anwser":"b"}',
        "empty_prompt": '{"prompt":""}',
        "no_tokens": '{"tokens":[]}',
        "negative_id": '{"tokens":[-1]}',
        "huge_id": '{"tokens":[259]}',
        "real_id": '{"tokens":[1.5]}',
        "overflowing_id": '{"tokens":[99999999999999999999]}',
        "message_of_text": '{"messages":["hi"]}',
        "message_without_role": '{"messages":[{"content":"hi"}]}',
        "message_with_name": '{"messages":[{"role":"user","content":"hi","name":"x"}]}',
        "no_messages": '{"messages":[]}',
        "empty_answer": '{"prompt":"a","answer":""}',
        "answer_of_nothing": '{"prompt":"a","answer":[]}',
        "answer_of_numbers": '{"prompt":"a","answer":[1]}',
        "id_of_array": '{"prompt":"a","id":[1]}',
        "deep": '{"prompt":' + "[" * 500,
        "not_utf8": b'{"prompt":"\xff"}',
        "lone_surrogate": '{"prompt":"\\ud800"}',
        "zero_byte": b'{"prompt":"a"}\n{"prompt":"a\0"}',
    }
    for name, data in broken.items():
        write("prompt_lines", name, data)


if __name__ == "__main__":
    safetensors()
    gguf()
    gguf_model()
    shard_index()
    config()
    tokenizer()
    chat_template()
    tokenizer_model()
    prompt_lines()
