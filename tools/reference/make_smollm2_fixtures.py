#!/usr/bin/env python3
"""Writes tests/data/reference/smollm2_{short,2k,8k}.safetensors and smollm2.json; see README.md.

Usage: make_smollm2_fixtures.py SmolLM2-135M-Instruct.Q4_1.gguf [OUT]   (a quarter of an hour, 8 GB)
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
NUM_COMPACT = 32
MAX_BFLOAT16_EAGER = 2000  # longer prompts run in bfloat16 with sdpa only
BUDGETS = (256, 1024)


class Forward:
    """One forward over a prompt and `answer_ids`: hidden rows of LAYERS, logits [n, vocab] as Run's,
    SnapKV's scores, and the cache of the prompt."""

    @torch.no_grad()
    def __init__(self, model, prompt_ids, answer_ids, rows):
        self.model, self.num_prompt, self.hidden = model, len(prompt_ids), []
        state = llama_runs.STATE
        hooks = llama_runs.record_hidden(model, rows, LAYERS, self.hidden)
        state.query_rows = slice(self.num_prompt - snapkv.WINDOW, self.num_prompt)
        state.recorded = {}
        output = model(torch.tensor([prompt_ids + answer_ids]), use_cache=True,
                       logits_to_keep=len(answer_ids) + 1)
        recorded, state.recorded, state.query_rows = state.recorded, None, slice(None)
        for hook in hooks:
            hook.remove()
        self.logits, self.cache = output.logits[0], output.cache
        self.cache.crop(-len(answer_ids))
        self.scores = [snapkv.pooled_scores(q, k[:, :self.num_prompt])
                       for _, (q, k) in sorted(recorded.items())
                       if self.num_prompt > max(BUDGETS)]

    def greedy(self, count, hidden_rows=None, seen=None):
        """As llama_runs.greedy; the cache is left as it was."""
        ids, leads = llama_runs.greedy(self.model, self.cache, self.logits[0], self.num_prompt,
                                       count, hidden_rows, seen)
        self.cache.crop(1 - count)
        return {"ids": ids, "leads": leads}

    def compact_greedy(self, budget):
        """Decoding that sees, per layer and KV head, only what SnapKV retained of the prompt."""
        hidden = {layer: snapkv.hidden_rows(s, budget) for layer, s in enumerate(self.scores)}
        return self.greedy(NUM_COMPACT, hidden)


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
    """snapkv.selection with runs of positions, and those near the border named."""
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


def errors(run, reference, logit_ids):
    """reference: hidden and logits, these of `logit_ids` only."""
    return {"hidden": [llama_runs.errors(h, r) for h, r in zip(run.hidden, reference[0])],
            "logits": llama_runs.errors(run.logits[:, logit_ids], reference[1])}


def other_errors(folder, reference, ids, num_prompt, rows, logit_ids):
    """Errors of Transformers' own runs but float32 with sdpa."""
    out = {}
    for name, dtype, attention in (("float32", torch.float32, "eager"),
                                   ("bfloat16", torch.bfloat16, "sdpa"),
                                   ("bfloat16", torch.bfloat16, "eager")):
        if name == "bfloat16" and attention == "eager" and num_prompt > MAX_BFLOAT16_EAGER:
            continue
        run = llama_runs.Run(llama_runs.load(folder, dtype, attention), ids, num_prompt, LAYERS,
                             rows)
        out[f"{name}_{attention}"] = errors(run, reference, logit_ids)
        print(f"  {name}_{attention}", out[f"{name}_{attention}"]["logits"], flush=True)
        del run
        gc.collect()
    return out


def run_float64(name, folder, prompt_ids, rows, logit_ids):
    """Hidden states and logits; greedy; compact greedy by budget; SnapKV's scores."""
    model = llama_runs.load_float64(folder)
    if name == "short":
        print("float64 against plain numpy:", plain_llama.check_float64(
            model, llama_runs.Run(model, prompt_ids, len(prompt_ids)), prompt_ids))
    forward, seen = Forward(model, prompt_ids, [], rows), []
    greedy = forward.greedy(NUM_GREEDY, seen=seen)
    reference = (forward.hidden, torch.stack(seen[:NUM_ANSWER])[:, logit_ids])
    compact = {budget: forward.compact_greedy(budget) for budget in BUDGETS if forward.scores}
    return reference, greedy, compact, forward.scores


def make_fixture(name, folder, tokenizer, logit_ids, out_folder):
    prompt = smollm2_prompts.prompt(name, lambda text: tokenizer.encode(text).ids)
    prompt_ids = tokenizer.encode(prompt).ids
    rows = llama_runs.spread_rows(len(prompt_ids), NUM_ROWS - 4, 4)
    reference, greedy, compact, scores = run_float64(name, folder, prompt_ids, rows, logit_ids)
    gc.collect()
    answer_ids = greedy["ids"][:NUM_ANSWER]
    entry = {"file": f"smollm2_{name}.safetensors", "prompt_ids": prompt_ids,
             "answer_ids": answer_ids, "rows": rows}

    run32 = Forward(llama_runs.load(folder, torch.float32, llama_runs.RECORDED_SDPA), prompt_ids,
                    answer_ids[:-1], rows)
    entry["errors"] = {"float32_sdpa": errors(run32, reference, logit_ids)}
    print(name, len(prompt_ids), entry["errors"]["float32_sdpa"]["logits"], flush=True)
    entry["greedy"] = agreed(tokenizer, greedy, run32.greedy(NUM_GREEDY))
    if scores:
        entry["snapkv"] = snapkv_entry(scores, run32.scores)
        entry["compact_greedy"] = {
            f"budget_{budget}": agreed(tokenizer, run, run32.compact_greedy(budget))
            for budget, run in compact.items()}
    del run32
    gc.collect()
    entry["errors"].update(other_errors(folder, reference, prompt_ids + answer_ids[:-1],
                                        len(prompt_ids), rows, logit_ids))
    tensors = fixture_file.high_low("logits", reference[1])
    for layer, hidden in zip(LAYERS, reference[0]):
        tensors.update(fixture_file.high_low(f"hidden.{layer}", hidden))
    fixture_file.write_tensors(os.path.join(out_folder, entry["file"]), tensors)
    return entry


def agreed(tokenizer, run64, run32):
    """Both greedy runs with their text. Fails if rounding to float32 changes a token."""
    text = tokenizer.decode(run64["ids"], skip_special_tokens=False)
    print("  least lead", min(run64["leads"]), repr(text), flush=True)
    assert run64["ids"] == run32["ids"]
    return {"float64": {**run64, "text": text}, "float32": run32}


def main():
    path = sys.argv[1]
    out_folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "tests/data/reference")
    os.makedirs(out_folder, exist_ok=True)
    with open(path, "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == SHA256
    llama_runs.QUERY_BLOCK = 1024  # of 8,000 float64 logits: 64 MB a head
    tokenizer = smollm2_prompts.tokenizer(path)
    vocab_size = tokenizer.get_vocab_size()
    logit_ids = np.sort(np.random.RandomState(0).choice(vocab_size, NUM_LOGITS, replace=False))
    fixture = {"model": f"models/smollm2/{os.path.basename(path)}", "sha256": SHA256,
               "versions": fixture_file.VERSIONS, "layers": LAYERS, "logit_ids": logit_ids.tolist(),
               "prompts": {}}
    with tempfile.TemporaryDirectory() as folder:
        expand(path, folder)
        for name in PROMPTS:
            fixture["prompts"][name] = make_fixture(name, folder, tokenizer, logit_ids, out_folder)
            fixture_file.write_json(os.path.join(out_folder, "smollm2.json"), fixture)


if __name__ == "__main__":
    main()
