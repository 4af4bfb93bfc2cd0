#!/usr/bin/env python3
"""Writes tests/data/reference/<toy>.safetensors and toys.json for the models in tests/data/models.

Usage: make_toy_fixtures.py [OUT]   (seconds); see README.md here.
"""
import os
import sys

import numpy as np

import fixture_file
import llama_runs
import plain_llama

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODELS = os.path.join(ROOT, "tests", "data", "models")
TOYS = ("toy2", "toy-untied-llama3", "toy-f16")
NUM_TOKENS = 200


def make_fixture(name, seed, out_folder):
    folder = os.path.join(MODELS, name)
    model64 = llama_runs.load_float64(folder)
    vocab_size = model64.config.vocab_size
    ids = [0] + np.random.RandomState(seed).randint(3, vocab_size, NUM_TOKENS - 1).tolist()
    run64 = llama_runs.Run(model64, ids, NUM_TOKENS)
    print(name, "float64 against plain numpy:", plain_llama.check_float64(model64, run64, ids))
    rows = llama_runs.spread_rows(NUM_TOKENS)
    file = f"{name}.safetensors"
    fixture_file.write_tensors(os.path.join(out_folder, file),
                               fixture_file.run_tensors(run64, rows))
    return {"file": file, "model": f"tests/data/models/{name}", "prompt_ids": ids, "rows": rows,
            "errors": llama_runs.all_errors(folder, run64, ids, NUM_TOKENS, rows)}


def main():
    out_folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/data/reference")
    os.makedirs(out_folder, exist_ok=True)
    toys = {name: make_fixture(name, 100 + i, out_folder) for i, name in enumerate(TOYS)}
    fixture_file.write_json(os.path.join(out_folder, "toys.json"),
                            {"versions": fixture_file.VERSIONS, "models": toys})


if __name__ == "__main__":
    main()
