#!/usr/bin/env python3
"""Writes tests/data/reference/kvpress.json: what kvpress keeps of two prompts; see README.md.

Usage: make_kvpress_fixtures.py SmolLM2-135M-Instruct.Q4_1.gguf [OUT]   (two minutes, 4 GB)

kvpress wants Transformers below 5.3 (kvpress_requirements.txt), so it has an environment of its own.
Everything runs in float32 with Transformers' sdpa attention.
"""
import json
import os
import sys
from importlib.metadata import version

import kvpress
import torch
from transformers import AutoModelForCausalLM

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(ROOT, "tests", "data", "reference")
PRESSES = {  # with their defaults, and the budgets they run with
    "snapkv": (lambda ratio: kvpress.SnapKVPress(ratio), (128, 512)),
    "pyramidkv": (lambda ratio: kvpress.PyramidKVPress(ratio), (1400,)),  # below 1280 all layers alike
    "adakv": (lambda ratio: kvpress.AdaKVPress(kvpress.SnapKVPress(ratio)), (128, 512)),
    "tova": (lambda ratio: kvpress.TOVAPress(ratio), (128, 512)),
    "chunkkv": (lambda ratio: kvpress.ChunkKVPress(kvpress.SnapKVPress(ratio)), (128, 512)),
    "key-difference": (lambda ratio: kvpress.KeyDiffPress(ratio), (128, 512)),
    "recent": (lambda ratio: kvpress.StreamingLLMPress(ratio), (128, 512)),
    "expected-attention": (lambda ratio: kvpress.ExpectedAttentionPress(ratio), (128, 512)),
    "knorm": (lambda ratio: kvpress.KnormPress(ratio), (128, 512)),
}


def prompt_ids(file, name, length):
    with open(os.path.join(DATA, file), encoding="utf-8") as stream:
        prompts = json.load(stream)["prompts"]
    return prompts[name]["prompt_ids"][:length]


def ratio_of(budget, length):
    """The ratio of which kvpress makes `budget`; 1 - budget / length alone may round to one less."""
    return 1 - (budget + 0.25) / length


@torch.no_grad()
def keys_of(model, ids, press=None):
    """[layer] keys [Hkv, kept, D], and for each layer what a press masks instead of dropping."""
    for layer in model.model.layers:
        layer.self_attn.masked_key_indices = None
    if press is None:
        cache = model(torch.tensor([ids]), use_cache=True, logits_to_keep=1).past_key_values
    else:
        with press(model):
            cache = model(torch.tensor([ids]), use_cache=True, logits_to_keep=1).past_key_values
    masked = [layer.self_attn.masked_key_indices for layer in model.model.layers]
    return [layer.keys[0] for layer in cache.layers], masked


def kept_of_head(full, kept):
    """Positions of the rows of `kept` in `full`: rotated keys are all different."""
    places = {row.numpy().tobytes(): position for position, row in enumerate(full)}
    return sorted(places[row.numpy().tobytes()] for row in kept)


def kept_positions(full, keys, masked):
    layers = []
    for layer, (all_keys, kept) in enumerate(zip(full, keys)):
        if masked[layer] is None:
            layers.append([kept_of_head(a, k) for a, k in zip(all_keys, kept)])
            continue
        _, heads, positions = masked[layer]
        left_out = [set(positions[heads == head].tolist()) for head in range(all_keys.shape[0])]
        layers.append([[i for i in range(all_keys.shape[1]) if i not in out] for out in left_out])
    return layers


def bits(positions, length):
    """A hexadecimal number whose bit i, counted from the left, says whether position i was kept."""
    kept = set(positions)
    digits = -(-length // 4)
    return "".join(f"{sum(((4 * d + b) in kept) << (3 - b) for b in range(4)):x}"
                   for d in range(digits))


def cases(model, ids):
    full, _ = keys_of(model, ids)
    for name, (make, budgets) in PRESSES.items():
        for budget in budgets:
            keys, masked = keys_of(model, ids, make(ratio_of(budget, len(ids))))
            layers = kept_positions(full, keys, masked)
            print(name, budget, [sum(map(len, heads)) for heads in layers][:6], file=sys.stderr)
            yield {"press": name, "budget": budget,
                   "kept": [[bits(head, len(ids)) for head in heads] for heads in layers]}


def main(gguf, out=DATA):
    needle = AutoModelForCausalLM.from_pretrained(os.path.join(ROOT, "models", "needle"),
                                                  dtype=torch.float32)
    folder, file = os.path.split(os.path.abspath(gguf))
    smollm2 = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    runs = [("needle", "needle.json", "4k", 2048, needle),
            ("smollm2", "smollm2.json", "2k", 2000, smollm2)]
    result = {"versions": {name: version(name).split("+")[0]
                           for name in ("kvpress", "transformers", "torch")}, "prompts": []}
    for name, fixture, prompt, length, model in runs:
        ids = prompt_ids(fixture, prompt, length)
        result["prompts"].append({"model": name, "fixture": fixture, "prompt": prompt,
                                  "length": len(ids), "cases": list(cases(model.eval(), ids))})
    with open(os.path.join(out, "kvpress.json"), "w", encoding="utf-8", newline="\n") as stream:
        json.dump(result, stream, indent=0)
        stream.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
