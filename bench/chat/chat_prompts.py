#!/usr/bin/env python3
"""Writes prompts for a chat model that ask for one fact, as `tidekv sweep` reads them.

Usage: chat_prompts.py TIDEKV MODEL [--tokens 2048] [-n 50] [--seed 1]

One sentence tells a seven-digit number for a name; it stands at a random place among four short
sentences in turn. The question follows, and the assistant's answer is begun up to the number. The
number of filler sentences is the largest with which the conversation has at most --tokens tokens,
as `TIDEKV tokenize -m MODEL --chat` counts them.
"""
import argparse
import json
import os
import random
import subprocess

FILLER = ["Rain fell on the quiet hills.", "The river kept its slow pace.",
          "A lamp burned in the window.", "Nothing else happened that day."]
WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "needle")


def words(name):
    with open(os.path.join(WORDS, name), encoding="utf-8") as lines:
        return lines.read().split()


def conversation(rng, num_fillers, adjectives, nouns):
    key = f"{rng.choice(adjectives)}-{rng.choice(nouns)}"
    number = str(rng.randrange(1000000, 10000000))
    fact = f"The secret number of {key} is {number}."
    sentences = [FILLER[i % len(FILLER)] for i in range(num_fillers)]
    sentences.insert(rng.randrange(num_fillers + 1), fact)
    text = " ".join(sentences) + f"\n\nWhat is the secret number of {key}?"
    return {"messages": [{"role": "user", "content": text}],
            "prefix": f"The secret number of {key} is", "answer": number}


def num_tokens(tidekv, model, line):
    command = [tidekv, "tokenize", "-m", model, "--chat", "--ids", "-f", "-"]
    ids = subprocess.run(command, input=line["messages"][0]["content"].encode(), check=True,
                         stdout=subprocess.PIPE).stdout
    return len(json.loads(ids))


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
    options = parser.parse_args()
    lists = words("words_adj.txt"), words("words_noun.txt")

    def prompt(seed, num_fillers):
        return conversation(random.Random(seed), num_fillers, *lists)

    fillers = largest_filler(options.tokens, lambda n: num_tokens(
        options.tidekv, options.model, prompt(options.seed, n)))
    for seed in range(options.seed, options.seed + options.n):
        print(json.dumps(prompt(seed, fillers), ensure_ascii=False))


if __name__ == "__main__":
    main()
