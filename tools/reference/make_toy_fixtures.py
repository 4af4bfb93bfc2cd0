#!/usr/bin/env python3
"""Writes tests/data/reference/<toy>.safetensors and toys.json for the models in tests/data/models.

Usage: make_toy_fixtures.py [OUT]   (a minute); see README.md here.
"""
import os
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

import fixture_file
import gguf_file
import llama_runs
import make_tiny_models
import plain_llama

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODELS = os.path.join(ROOT, "tests", "data", "models")
TOYS = ("toy2", "toy-untied-llama3", "toy-f16", *make_tiny_models.MODELS)
NUM_TOKENS = 200
NUM_ANSWER_TOKENS = 8

# Files that Transformers' own GGUF reader refuses: it takes a Qwen3 head_dim to be 128, and knows
# no split files.
UNREAD = ("toy-qwen3", "toy-linear-rope")


def make_fixture(name, folder, seed, out_folder):
    """Of the model in `folder`."""
    model64 = llama_runs.load_float64(folder)
    vocab_size = model64.config.vocab_size
    ids = [0] + np.random.RandomState(seed).randint(
        3, vocab_size, NUM_TOKENS + NUM_ANSWER_TOKENS - 1).tolist()
    run64 = llama_runs.Run(model64, ids[:-1], NUM_TOKENS)
    print(name, "float64 against plain numpy:", plain_llama.check_float64(
        model64, llama_runs.Run(model64, ids[:NUM_TOKENS], NUM_TOKENS), ids[:NUM_TOKENS]))
    rows = llama_runs.spread_rows(NUM_TOKENS)
    file = f"{name}.safetensors"
    fixture_file.write_tensors(os.path.join(out_folder, file),
                               fixture_file.run_tensors(run64, rows))
    return {"file": file, "prompt_ids": ids[:NUM_TOKENS], "answer_ids": ids[NUM_TOKENS:],
            "rows": rows, "errors": llama_runs.all_errors(folder, run64, ids[:-1], NUM_TOKENS, rows)}


def path_in_repository(name):
    return f"tests/data/models/{name}"


def first_gguf(name):
    return path_in_repository(os.path.basename(make_tiny_models.gguf_paths(MODELS, name)[0]))


def check_gguf(name, config):
    """That Transformers reads the same weights in the GGUF file as we; returns ours.

    Where it knows a model: it gives a Llama model no biases and ignores rope_freqs.
    """
    paths = make_tiny_models.gguf_paths(MODELS, name)
    weights = gguf_file.read_weights(paths, config)
    if name not in UNREAD:
        model = AutoModelForCausalLM.from_pretrained(
            MODELS, gguf_file=os.path.basename(paths[0]), dtype=torch.float32)
        theirs = {key: value.numpy() for key, value in model.state_dict().items()
                  if key != "lm_head.weight" or not config.tie_word_embeddings}
        assert all(np.array_equal(weights[key], value) for key, value in theirs.items())
        assert all(key in theirs or key.endswith("bias") or key == "rope_freqs.weight"
                   for key in weights)
    return weights


def check_rope_factors(config, factors):
    """That the plain frequencies over the file's factors are Transformers', bit for bit, so that
    one fixture holds for the folder and the file."""
    rope = AutoModelForCausalLM.from_config(config).model.rotary_emb
    plain, _ = rope.compute_default_rope_parameters(config)
    assert torch.equal(plain / torch.from_numpy(factors), rope.inv_freq)


def folder_fixture(name, seed, out_folder):
    folder = os.path.join(MODELS, name)
    entry = {"model": path_in_repository(name)}
    if make_tiny_models.gguf_paths(MODELS, name):
        entry["gguf"] = first_gguf(name)
        config = AutoConfig.from_pretrained(folder)
        weights = check_gguf(name, config)
        if "rope_freqs.weight" in weights:
            check_rope_factors(config, weights["rope_freqs.weight"])
    return {**entry, **make_fixture(name, folder, seed, out_folder)}


def quantised_fixture(name, seed, out_folder):
    """Of the dequantised weights, which Transformers reads from a folder of its own in float32."""
    config = make_tiny_models.QUANTISED[name]
    with tempfile.TemporaryDirectory() as folder:
        make_tiny_models.write_folder(folder, config, check_gguf(name, config), torch.float32)
        return {"model": first_gguf(name), **make_fixture(name, folder, seed, out_folder)}


def main():
    out_folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/data/reference")
    os.makedirs(out_folder, exist_ok=True)
    toys = {}
    for seed, name in enumerate((*TOYS, *make_tiny_models.QUANTISED), start=100):
        make = quantised_fixture if name in make_tiny_models.QUANTISED else folder_fixture
        toys[name] = make(name, seed, out_folder)
    fixture_file.write_json(os.path.join(out_folder, "toys.json"),
                            {"versions": fixture_file.VERSIONS, "models": toys})


if __name__ == "__main__":
    main()
