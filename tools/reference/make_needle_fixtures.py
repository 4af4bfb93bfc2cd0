#!/usr/bin/env python3
"""Writes tests/data/reference/needle_{short,4k}.safetensors and needle.json; see README.md here.

Usage: make_needle_fixtures.py [OUT]   (under two minutes, 2 GB)
"""
import os
import random
import sys

import torch

import fixture_file
import llama_runs
import plain_llama
import snapkv

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
NEEDLE = os.path.join(ROOT, "models", "needle")
sys.path.insert(0, NEEDLE)
import make_prompts  # noqa: E402  (found only now)

PROMPTS = {"short": {"task": "multikey", "max_tokens": 480, "seed": 2},
           "4k": {"task": "multikey", "max_tokens": 4096, "seed": 1}}
SNAPKV_BUDGETS = (128, 512)
COMPACT_BUDGET = 256


def tokenize(spec):
    """The prompt, its ids, and the ids of the answer with the newline that ends it."""
    made = make_prompts.make(random.Random(spec["seed"]), spec["task"], spec["max_tokens"])
    encode = make_prompts.TOKENIZER.encode
    prompt_ids = encode(made["prompt"]).ids
    ids = encode(made["prompt"] + made["answer"] + "\n").ids
    assert prompt_ids[0] == 0 and ids[:len(prompt_ids)] == prompt_ids
    return made, prompt_ids, ids[len(prompt_ids):]


def decode(ids):
    return make_prompts.TOKENIZER.decode(ids, skip_special_tokens=False)


def greedy_entry(ids, leads):
    return {"ids": ids, "leads": leads, "text": decode(ids)}


def full_greedy(model64, model32, prompt_ids, count):
    """Greedy text from the full cache, which float64 and Transformers' float32 must agree on."""
    out = {}
    for name, model in (("float64", model64), ("float32", model32)):
        cache, logits = llama_runs.prefill(model, prompt_ids)
        out[name] = greedy_entry(*llama_runs.greedy(model, cache, logits, len(prompt_ids), count))
    assert out["float64"]["ids"] == out["float32"]["ids"]
    return out


def compact_greedy(model, scores, prompt_ids, count):
    """Greedy text when decode sees, per layer and KV head, only what SnapKV retained."""
    hidden = {layer: snapkv.hidden_rows(s, COMPACT_BUDGET) for layer, s in enumerate(scores)}
    cache, logits = llama_runs.prefill(model, prompt_ids)
    return greedy_entry(*llama_runs.greedy(model, cache, logits, len(prompt_ids), count, hidden))


def layer_scores(run, num_prompt):
    return [snapkv.pooled_scores(q[:, :num_prompt], k[:, :num_prompt])
            for _, (q, k) in sorted(run.recorded.items())]


def snapkv_entry(scores, scores32):
    out = {"window": snapkv.WINDOW, "kernel": snapkv.KERNEL}
    for budget in sorted((*SNAPKV_BUDGETS, COMPACT_BUDGET)):
        out[f"budget_{budget}"] = [[snapkv.selection(h, h32, budget) for h, h32 in zip(s, s32)]
                                   for s, s32 in zip(scores, scores32)]
    return out


def make_fixture(name, spec, model64, out_folder):
    made, prompt_ids, answer_ids = tokenize(spec)
    num_prompt, ids = len(prompt_ids), prompt_ids + answer_ids[:-1]
    rows = llama_runs.spread_rows(num_prompt)
    run64 = llama_runs.Run(model64, ids, num_prompt)
    tensors = fixture_file.run_tensors(run64, rows)
    entry = {"file": f"needle_{name}.safetensors", **spec, "prompt": made["prompt"],
             "answer": made["answer"], "prompt_ids": prompt_ids, "answer_ids": answer_ids,
             "rows": rows,
             "errors": llama_runs.all_errors(NEEDLE, run64, ids, num_prompt, rows),
             "greedy": full_greedy(model64, llama_runs.load(NEEDLE, torch.float32, "sdpa"),
                                   prompt_ids, 16)}
    assert run64.logits.argmax(-1).tolist() == answer_ids
    if name == "short":
        print("float64 against plain numpy:",
              plain_llama.check_float64(model64, llama_runs.Run(model64, prompt_ids, num_prompt),
                                        prompt_ids))
    else:
        model32 = llama_runs.load(NEEDLE, torch.float32, llama_runs.REFERENCE)
        scores = layer_scores(run64, num_prompt)
        scores32 = layer_scores(llama_runs.Run(model32, ids, num_prompt), num_prompt)
        tensors.update({f"snapkv_scores.{layer}": s.to(torch.float32)
                        for layer, s in enumerate(scores)})
        entry["snapkv"] = snapkv_entry(scores, scores32)
        entry["compact_greedy"] = {
            "budget": COMPACT_BUDGET,
            "float64": compact_greedy(model64, scores, prompt_ids, 12),
            "float32": compact_greedy(model32, scores32, prompt_ids, 12)}
    fixture_file.write_tensors(os.path.join(out_folder, entry["file"]), tensors)
    return entry


def main():
    out_folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/data/reference")
    os.makedirs(out_folder, exist_ok=True)
    model64 = llama_runs.load_float64(NEEDLE)
    fixture = {"model": "models/needle", "versions": fixture_file.VERSIONS, "prompts": {}}
    for name, spec in PROMPTS.items():
        fixture["prompts"][name] = make_fixture(name, spec, model64, out_folder)
    fixture_file.write_json(os.path.join(out_folder, "needle.json"), fixture)


if __name__ == "__main__":
    main()
