"""A Transformers model as a GGUF file and back, through the gguf package, as llama.cpp converts it.

Tensors of one dimension are F32. A file of architecture llama (llama and mistral models) has the
rows of the query and key matrices, and their biases, in another order: within a head, row 2i is the
model's row i and row 2i + 1 its row i + D/2.
"""
import os
import re

import numpy as np
from gguf import (MODEL_ARCH, GGMLQuantizationType, GGUFReader, GGUFWriter, LlamaFileType,
                  RopeScalingType, TokenType, get_tensor_name_map)
from gguf.quants import dequantize, quantize

ARCHITECTURES = {"llama": MODEL_ARCH.LLAMA, "mistral": MODEL_ARCH.LLAMA,
                 "qwen2": MODEL_ARCH.QWEN2, "qwen3": MODEL_ARCH.QWEN3}
FILE_TYPES = {"F32": LlamaFileType.ALL_F32, "F16": LlamaFileType.MOSTLY_F16,
              "BF16": LlamaFileType.MOSTLY_BF16}


def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def is_permuted(config, name):
    """`name` is a Transformers tensor name."""
    return (ARCHITECTURES[config.model_type] is MODEL_ARCH.LLAMA and
            re.search(r"self_attn\.[qk]_proj\.", name) is not None)


def permuted(rows, dim):
    heads = rows.reshape(-1, 2, dim // 2, *rows.shape[1:])
    return heads.swapaxes(1, 2).reshape(rows.shape)


def unpermuted(rows, dim):
    heads = rows.reshape(-1, dim // 2, 2, *rows.shape[1:])
    return heads.swapaxes(1, 2).reshape(rows.shape)


def rope_factors(config):
    """What rope_freqs.weight holds: each frequency of llama3 RoPE is the plain one over its factor."""
    rope = config.rope_parameters
    dim = head_dim(config)
    plain = 1.0 / rope["rope_theta"] ** (np.arange(0, dim, 2, dtype=np.float64) / dim)
    turns = rope["original_max_position_embeddings"] * plain / (2 * np.pi)  # over the old context
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)  # 1: as it was; 0: slowed by `factor`
    return (1.0 / ((1.0 - kept) / rope["factor"] + kept)).astype(np.float32)


def add_sizes(writer, config, name):
    """Names of keys as llama.cpp's conversion of each architecture writes them."""
    writer.add_type("model")
    writer.add_name(name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if head_dim(config) * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim(config))
        writer.add_value_length(head_dim(config))
    if ARCHITECTURES[config.model_type] is MODEL_ARCH.LLAMA:
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(head_dim(config))
    if config.rope_parameters["rope_type"] == "linear":
        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.rope_parameters["factor"])


def add_tokenizer(writer, tokenizer):
    """`tokenizer`: a byte-level BPE tokenizer.json. One without merges, which a file of model gpt2
    cannot be without, must be make_tiny_model.py's: special tokens, then one for each byte. It
    becomes a SentencePiece model of byte pieces."""
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens, merges = list(tokenizer["model"]["vocab"]), tokenizer["model"]["merges"]
    other_type = TokenType.NORMAL if merges else TokenType.BYTE
    if merges:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("llama-bpe")
        writer.add_token_merges(merges)
    else:
        assert len(tokens) == len(special) + 256
        tokens[len(special):] = [f"<0x{byte:02X}>" for byte in range(256)]
        writer.add_tokenizer_model("llama")
        writer.add_token_scores([0.0] * len(tokens))
        writer.add_add_space_prefix(False)
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if id in special else other_type
                            for id in range(len(tokens))])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(True)


def encoded(values, name, types):
    """Bytes or numbers of one tensor and their type. types: the matrices' type, or a function that
    gives the type or the blocks themselves, see write."""
    if values.ndim == 1:
        return values.astype(np.float32), GGMLQuantizationType.F32
    chosen = types(name, values.shape) if callable(types) else types
    if isinstance(chosen, tuple):
        return chosen[1], GGMLQuantizationType[chosen[0]]
    return quantize(values, GGMLQuantizationType[chosen]), GGMLQuantizationType[chosen]


def write(path, config, weights, tokenizer, types, max_tensors_per_file=0):
    """weights: Transformers name -> float32 array. types: "F32", "F16", "BF16", or a function of a
    GGUF tensor name and shape that gives the name of a type, or (name of a type, blocks) to store
    instead of the weights."""
    arch = ARCHITECTURES[config.model_type]
    names = get_tensor_name_map(arch, config.num_hidden_layers)
    writer = GGUFWriter(path, arch_name(config), split_max_tensors=max_tensors_per_file)
    add_sizes(writer, config, os.path.basename(path).removesuffix(".gguf"))
    writer.add_file_type(LlamaFileType.GUESSED if callable(types) else FILE_TYPES[types])
    writer.add_quantization_version(2)
    add_tokenizer(writer, tokenizer)
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config))
    for name, values in weights.items():
        if is_permuted(config, name):
            values = permuted(values, head_dim(config))
        gguf_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        data, dtype = encoded(values, gguf_name, types)
        writer.add_tensor(gguf_name, np.ascontiguousarray(data), raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def arch_name(config):
    return "llama" if ARCHITECTURES[config.model_type] is MODEL_ARCH.LLAMA else config.model_type


def read_weights(paths, config):
    """The values of a file, or of the files of a split one: Transformers name -> float32 array.

    rope_freqs.weight, where there is one, keeps its name.
    """
    names = get_tensor_name_map(ARCHITECTURES[config.model_type], config.num_hidden_layers)
    ours = {names.get_name(name): name for name in transformers_names(config)}
    weights = {}
    for tensor in (tensor for path in paths for tensor in GGUFReader(path).tensors):
        base, suffix = tensor.name.rsplit(".", 1)
        name = f"{ours[base]}.{suffix}" if base in ours else tensor.name
        values = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        weights[name] = unpermuted(values, head_dim(config)) if is_permuted(config, name) else values
    return weights


def transformers_names(config):
    yield from ("model.embed_tokens", "model.norm", "lm_head")
    for layer in range(config.num_hidden_layers):
        for part in ("input_layernorm", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj",
                     "mlp.down_proj", *(f"self_attn.{name}" for name in (
                         "q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"))):
            yield f"model.layers.{layer}.{part}"
