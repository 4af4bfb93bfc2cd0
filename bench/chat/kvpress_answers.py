#!/usr/bin/env python3
"""How many prompts Transformers answers right with what kvpress keeps.

Usage: kvpress_answers.py TIDEKV MODEL PROMPTS [-n 6] [--press NAME,...] [--budget K,...]
                          [--window W] [--kernel N]   (a minute a prompt of 2,000 tokens)

Same token ids as `tidekv sweep`, float32, greedy, kvpress's defaults (tidekv: --preset kvpress), but
for SnapKV's window and kernel where they are given. An environment for it:
tools/reference/kvpress_requirements.txt.
"""
import argparse
import json
import os
import subprocess

import kvpress
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

PRESSES = {"full": None, "snapkv": kvpress.SnapKVPress, "tova": kvpress.TOVAPress,
           "recent": kvpress.StreamingLLMPress, "expected-attention": kvpress.ExpectedAttentionPress,
           "key-difference": kvpress.KeyDiffPress}
NEW_TOKENS = 10


def token_ids(program, model, text, *flags):
    command = [program, "tokenize", "-m", model, "-p", text, "--ids", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def ids_of(program, model, line):
    """Of a plain prompt, or of a conversation of one message and the beginning of its answer."""
    if "prompt" in line:
        return token_ids(program, model, line["prompt"])
    [message] = line["messages"]
    return (token_ids(program, model, message["content"], "--chat")
            + token_ids(program, model, line["prefix"], "--no-bos"))


def ratio_of(budget, length):
    """The ratio of which kvpress makes `budget`; 1 - budget / length alone may round to one less."""
    ratio = 1 - budget / length
    return ratio if int(length * (1 - ratio)) == budget else ratio - 1e-9


def load(path):
    """A GGUF file or a Hugging Face folder."""
    folder, file = (path, None) if os.path.isdir(path) else os.path.split(os.path.abspath(path))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder, gguf_file=file)


def press_of(name, ratio, options):
    if name == "snapkv":
        return PRESSES[name](ratio, window_size=options.window, kernel_size=options.kernel)
    return PRESSES[name](ratio)


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


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tidekv", help="the program, for its token ids")
    parser.add_argument("model", help="a GGUF file or a Hugging Face folder")
    parser.add_argument("prompts", help="what chat_prompts.py or needle_prompt --jsonl wrote")
    parser.add_argument("-n", type=int, default=6, help="prompts, from the first (6)")
    parser.add_argument("--press", default="full,snapkv,tova,recent,expected-attention",
                        help="of " + ", ".join(PRESSES))
    parser.add_argument("--budget", default="256,512", help="tokens kept (256,512)")
    parser.add_argument("--window", type=int, default=64, help="snapkv: last tokens that ask (64)")
    parser.add_argument("--kernel", type=int, default=5, help="snapkv: tokens pooled (5)")
    options = parser.parse_args()
    options.press = options.press.split(",")
    options.budget = [int(budget) for budget in options.budget.split(",")]
    if not PRESSES.keys() >= set(options.press):
        parser.error("--press: expected some of " + ", ".join(PRESSES))
    return options


def main():
    options = parse_arguments()
    model, tokenizer = load(options.model)
    right = {}
    with open(options.prompts, encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream][:options.n]
    for line in lines:
        ids = ids_of(options.tidekv, options.model, line)
        for name in options.press:
            for budget in options.budget if PRESSES[name] else [None]:
                kept = press_of(name, ratio_of(budget, len(ids)), options) if budget else None
                text = tokenizer.decode(answer(model, ids, kept))
                key = f"{name} {budget}" if budget else name
                right[key] = right.get(key, 0) + (line["answer"] in text)
                print(len(ids), key, repr(text), flush=True)
    for key, count in right.items():
        print(f"{key}: {count} of {len(lines)}")


if __name__ == "__main__":
    main()
