#!/usr/bin/env python3
"""Writes prompts for a chat model that ask for one fact, as `tidekv sweep` reads them.

Usage: chat_prompts.py TIDEKV MODEL [--tokens 2048] [-n 50] [--seed 1] [--wording secret]

One sentence tells a seven-digit number for a name; it stands at a random place among four short
sentences in turn. The question follows, and the assistant's answer is begun up to the number. The
number of filler sentences is the largest with which the conversation has at most --tokens tokens,
as `TIDEKV tokenize -m MODEL --chat` counts them. Other wordings: `space`, the answer is begun with
the space too; `phone`, the phone number of a first name; `one-filler`, one short sentence only.
"""
import argparse
import json
import os
import random
import subprocess
import sys
from typing import NamedTuple

FILLER = ["Rain fell on the quiet hills.", "The river kept its slow pace.",
          "A lamp burned in the window.", "Nothing else happened that day."]
NAMES = ["Anna", "Peter", "London", "Maria", "Paris", "Tom"]
WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "needle")


def words(name):
    with open(os.path.join(WORDS, name), encoding="utf-8") as lines:
        return lines.read().split()


class Wording(NamedTuple):
    number: str             # what the number is called
    parts: list[list[str]]  # a key is one of each
    fillers: list[str]
    prefix_end: str


def wordings():
    secret = Wording("secret number", [words("words_adj.txt"), words("words_noun.txt")], FILLER, "")
    return {"secret": secret, "space": secret._replace(prefix_end=" "),
            "phone": Wording("phone number", [NAMES], FILLER, ""),
            "one-filler": secret._replace(fillers=FILLER[:1])}


def conversation(rng, num_fillers, wording):
    key = "-".join(rng.choice(part) for part in wording.parts)
    number = str(rng.randrange(1000000, 10000000))
    beginning = f"The {wording.number} of {key} is"
    sentences = [wording.fillers[i % len(wording.fillers)] for i in range(num_fillers)]
    sentences.insert(rng.randrange(num_fillers + 1), f"{beginning} {number}.")
    text = " ".join(sentences) + f"\n\nWhat is the {wording.number} of {key}?"
    return {"messages": [{"role": "user", "content": text}],
            "prefix": beginning + wording.prefix_end, "answer": number}


def num_tokens(tidekv, model, line):
    command = [tidekv, "tokenize", "-m", model, "--chat", "--ids", "-f", "-"]
    done = subprocess.run(command, input=line["messages"][0]["content"], text=True,
                          capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"{tidekv} ended with {done.returncode}")
    return len(json.loads(done.stdout))


def largest_filler(tokens, count):
    """The largest n with count(n) <= tokens, where count grows with n."""
    low, high = 0, 1
    while count(high) <= tokens:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= tokens else (low, middle)
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tidekv", help="the program")
    parser.add_argument("model", help="a GGUF file or a Hugging Face folder with a chat template")
    parser.add_argument("--tokens", type=int, default=2048, help="of a conversation, at most (2048)")
    parser.add_argument("-n", type=int, default=50, help="prompts (50)")
    parser.add_argument("--seed", type=int, default=1)
    known = wordings()
    parser.add_argument("--wording", choices=known, default="secret")
    options = parser.parse_args()

    def prompt(seed, num_fillers):
        return conversation(random.Random(seed), num_fillers, known[options.wording])

    fillers = largest_filler(options.tokens, lambda n: num_tokens(
        options.tidekv, options.model, prompt(options.seed, n)))
    for seed in range(options.seed, options.seed + options.n):
        print(json.dumps(prompt(seed, fillers), ensure_ascii=False))


if __name__ == "__main__":
    main()
