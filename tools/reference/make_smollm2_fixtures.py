#!/usr/bin/env python3
"""Writes tests/data/reference/smollm2_{short,2k,8k}.safetensors and smollm2.json; see README.md.

Usage: make_smollm2_fixtures.py SmolLM2-135M-Instruct.Q4_1.gguf [OUT]   (half an hour, 10 GB)
"""
import gc
import hashlib
import os
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GgufConfig

import fixture_file
import gguf_file
import llama_runs
import plain_llama
import smollm2_prompts
import snapkv

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PROMPTS = ("short", "2k", "8k")
LAYERS = [0, 1, 9, 19, 29]  # whose hidden states are stored
NUM_ROWS = 24
NUM_ANSWER = 16  # positions whose logits are stored
NUM_LOGITS = 1024  # vocabulary entries of them
NUM_GREEDY = 64
NUM_COMPACT = 48
BUDGETS = (256, 1024)


class Prefill:
    """One forward over a prompt: cache, logits [vocab], stored hidden rows, and what SnapKV reads."""

    @torch.no_grad()
    def __init__(self, model, ids, rows):
        state, self.hidden, self.num_prompt = llama_runs.STATE, [], len(ids)
        hooks = llama_runs.record_hidden(model, rows, LAYERS, self.hidden)
        state.recorded, state.query_rows = {}, slice(-snapkv.WINDOW, None)
        self.cache, self.logits = llama_runs.prefill(model, ids)
        recorded, state.recorded, state.query_rows = state.recorded, None, slice(None)
        for hook in hooks:
            hook.remove()
        self.scores = [snapkv.pooled_scores(q, k) for _, (q, k) in sorted(recorded.items())
                       if len(ids) > max(BUDGETS)]

    def greedy(self, model, count, hidden_rows=None, seen=None):
        """As llama_runs.greedy; the cache is left as it was."""
        ids, leads = llama_runs.greedy(model, self.cache, self.logits, self.num_prompt, count,
                                       hidden_rows, seen)
        self.cache.crop(1 - count)
        return {"ids": ids, "leads": leads}

    def compact_greedy(self, model, budget):
        """Decoding that sees, per layer and KV head, only what SnapKV retained of the prompt."""
        hidden = {layer: snapkv.hidden_rows(s, budget) for layer, s in enumerate(self.scores)}
        return self.greedy(model, NUM_COMPACT, hidden)


def expand(path, folder):
    """Writes what Transformers reads in the file, in float32, as a folder, which loads faster."""
    model = AutoModelForCausalLM.from_pretrained(
        os.path.dirname(path), gguf_file=os.path.basename(path), dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    weights = gguf_file.read_weights([path], model.config)
    read = model.state_dict()
    assert set(read) - set(weights) == {"lm_head.weight"} and set(weights) <= set(read)
    assert all(np.array_equal(values, read[name].numpy()) for name, values in weights.items())
    model.save_pretrained(folder)


def runs_of(positions):
    """Ascending positions as first, count, first, count, ..."""
    out = []
    for position in positions:
        if out and position == out[-2] + out[-1]:
            out[-1] += 1
        else:
            out += [position, 1]
    return out


def selection(scores, scores32, budget):
    """snapkv.selection in the space of runs, with the positions near the border by name."""
    entry = snapkv.selection(scores, scores32, budget)
    entry["retained_runs"] = runs_of(entry.pop("retained"))
    if entry["num_near"] > 0:
        distance = (scores - entry["threshold"]).abs()
        near = distance <= entry["tie_tolerance"] * entry["threshold"]
        entry["near"] = near.nonzero()[:, 0].tolist()
    return entry


def snapkv_entry(scores, scores32):
    out = {"window": snapkv.WINDOW, "kernel": snapkv.KERNEL}
    for budget in BUDGETS:
        out[f"budget_{budget}"] = [[selection(h, h32, budget) for h, h32 in zip(s, s32)]
                                   for s, s32 in zip(scores, scores32)]
    return out


class Reference:
    """The float64 run of a prompt: stored hidden rows, and the logits of the first greedy steps."""

    def __init__(self, prefill, seen, logit_ids):
        self.hidden = prefill.hidden
        self.logits = torch.stack(seen[:NUM_ANSWER])[:, logit_ids]


def stock_errors(folder, reference, ids, num_prompt, rows, logit_ids):
    """Errors of Transformers' own float32 and bfloat16, under both of its stock attentions."""
    out = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        for attention in ("sdpa", "eager"):
            run = llama_runs.Run(llama_runs.load(folder, dtype, attention), ids, num_prompt, LAYERS,
                                 rows)
            out[f"{name}_{attention}"] = {
                "hidden": [llama_runs.errors(h, r) for h, r in zip(run.hidden, reference.hidden)],
                "logits": llama_runs.errors(run.logits[:, logit_ids], reference.logits)}
            del run
            gc.collect()
            print(" ", name, attention, out[f"{name}_{attention}"]["logits"], flush=True)
    return out


def compact_part(model64, prefill64, model32, prefill32):
    part = {"snapkv": snapkv_entry(prefill64.scores, prefill32.scores), "compact_greedy": {}}
    for budget in BUDGETS:
        part["compact_greedy"][f"budget_{budget}"] = {
            "float64": prefill64.compact_greedy(model64, budget),
            "float32": prefill32.compact_greedy(model32, budget)}
    return part


def make_fixture(name, folder, tokenizer, logit_ids, out_folder):
    prompt = smollm2_prompts.prompt(name, lambda text: tokenizer.encode(text).ids)
    prompt_ids = tokenizer.encode(prompt).ids
    num_prompt = len(prompt_ids)
    rows = llama_runs.spread_rows(num_prompt, NUM_ROWS - 4, 4)
    model64 = llama_runs.load_float64(folder)
    if name == "short":
        print("float64 against plain numpy:", plain_llama.check_float64(
            model64, llama_runs.Run(model64, prompt_ids, num_prompt), prompt_ids))
    prefill64, seen = Prefill(model64, prompt_ids, rows), []
    greedy = {"float64": prefill64.greedy(model64, NUM_GREEDY, seen=seen)}
    reference = Reference(prefill64, seen, logit_ids)
    print(name, num_prompt, tokenizer.decode(greedy["float64"]["ids"]), flush=True)

    model32 = llama_runs.load(folder, torch.float32, llama_runs.REFERENCE)
    prefill32 = Prefill(model32, prompt_ids, rows)
    greedy["float32"] = prefill32.greedy(model32, NUM_GREEDY)
    compact = compact_part(model64, prefill64, model32, prefill32) if prefill64.scores else {}
    finish_greedy(tokenizer, greedy, *compact.get("compact_greedy", {}).values())
    del model64, prefill64, model32, prefill32
    gc.collect()

    answer_ids = greedy["float64"]["ids"][:NUM_ANSWER]
    errors = stock_errors(folder, reference, prompt_ids + answer_ids[:-1], num_prompt, rows, logit_ids)
    file = f"smollm2_{name}.safetensors"
    tensors = fixture_file.high_low("logits", reference.logits)
    for layer, hidden in zip(LAYERS, reference.hidden):
        tensors.update(fixture_file.high_low(f"hidden.{layer}", hidden))
    fixture_file.write_tensors(os.path.join(out_folder, file), tensors)
    return {"file": file, "prompt_ids": prompt_ids, "answer_ids": answer_ids, "rows": rows,
            "errors": errors, "greedy": greedy, **compact}


def finish_greedy(tokenizer, *pairs):
    """Adds the text to each run, and checks that rounding to float32 changes no token; else the
    prompt is no test."""
    for pair in pairs:
        for run in pair.values():
            run["text"] = tokenizer.decode(run["ids"], skip_special_tokens=False)
        print("  least lead", min(pair["float64"]["leads"]), repr(pair["float64"]["text"]), flush=True)
        assert pair["float64"]["ids"] == pair["float32"]["ids"]


def main():
    path = sys.argv[1]
    out_folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "tests/data/reference")
    os.makedirs(out_folder, exist_ok=True)
    with open(path, "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == SHA256
    tokenizer = smollm2_prompts.tokenizer(path)
    vocab_size = tokenizer.get_vocab_size()
    logit_ids = np.sort(np.random.RandomState(0).choice(vocab_size, NUM_LOGITS, replace=False))
    fixture = {"model": os.path.basename(path), "sha256": SHA256,
               "versions": fixture_file.VERSIONS, "layers": LAYERS, "logit_ids": logit_ids.tolist(),
               "prompts": {}}
    with tempfile.TemporaryDirectory() as folder:
        expand(path, folder)
        for name in os.environ.get("PROMPTS", " ".join(PROMPTS)).split():
            fixture["prompts"][name] = make_fixture(name, folder, tokenizer, logit_ids, out_folder)
            fixture_file.write_json(os.path.join(out_folder, "smollm2.json"), fixture)


if __name__ == "__main__":
    main()
