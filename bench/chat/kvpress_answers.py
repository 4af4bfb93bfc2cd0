#!/usr/bin/env python3
"""How many prompts of chat_prompts.py Transformers answers right with what kvpress keeps.

Usage: kvpress_answers.py TIDEKV GGUF PROMPTS [-n 6]   (a minute a prompt of 2,000 tokens)

Same token ids as `tidekv sweep`, float32, greedy, kvpress's defaults (tidekv: --preset kvpress). An
environment for it: tools/reference/kvpress_requirements.txt.
"""
import argparse
import json
import os
import subprocess

import kvpress
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

PRESSES = {"full": None, "snapkv": kvpress.SnapKVPress, "tova": kvpress.TOVAPress,
           "recent": kvpress.StreamingLLMPress, "expected-attention": kvpress.ExpectedAttentionPress}
BUDGETS = (256, 512)
NEW_TOKENS = 10


def token_ids(program, model, text, *flags):
    command = [program, "tokenize", "-m", model, "-p", text, "--ids", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def ids_of(program, model, line):
    """A conversation of one message, and the beginning of its answer."""
    [message] = line["messages"]
    return (token_ids(program, model, message["content"], "--chat")
            + token_ids(program, model, line["prefix"], "--no-bos"))


def ratio_of(budget, length):
    """The ratio of which kvpress makes `budget`; 1 - budget / length alone may round to one less."""
    ratio = 1 - budget / length
    return ratio if int(length * (1 - ratio)) == budget else ratio - 1e-9


def prefill(model, ids, cache, press):
    if press is None:
        return model(torch.tensor([ids]), past_key_values=cache)
    with press(model):
        return model(torch.tensor([ids]), past_key_values=cache)


@torch.no_grad()
def answer(model, ids, press):
    """Greedy ids after the prompt, at the positions they have in the whole text."""
    cache = DynamicCache()
    logits = prefill(model, ids, cache, press).logits
    out = []
    for position in range(len(ids), len(ids) + NEW_TOKENS):
        out.append(logits[0, -1].argmax().item())
        logits = model(torch.tensor([out[-1:]]), past_key_values=cache,
                       position_ids=torch.tensor([[position]]),
                       cache_position=torch.tensor([cache.get_seq_length()])).logits
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tidekv", help="the program, for its token ids")
    parser.add_argument("gguf")
    parser.add_argument("prompts", help="what chat_prompts.py wrote")
    parser.add_argument("-n", type=int, default=6, help="prompts, from the first (6)")
    options = parser.parse_args()
    folder, file = os.path.split(os.path.abspath(options.gguf))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    right = {}
    with open(options.prompts, encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream][:options.n]
    for line in lines:
        ids = ids_of(options.tidekv, options.gguf, line)
        for name, press in PRESSES.items():
            for budget in BUDGETS if press else (len(ids),):
                kept = press and press(ratio_of(budget, len(ids)))
                text = tokenizer.decode(answer(model, ids, kept))
                key = f"{name} {budget}" if press else name
                right[key] = right.get(key, 0) + (line["answer"] in text)
                print(len(ids), key, repr(text), flush=True)
    for key, count in right.items():
        print(f"{key}: {count} of {len(lines)}")


if __name__ == "__main__":
    main()
