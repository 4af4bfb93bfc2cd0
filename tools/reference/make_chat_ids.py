#!/usr/bin/env python3
"""Writes tests/data/smollm2_chat_ids.json: the token ids of conversations with SmolLM2-135M-Instruct.

Usage: make_chat_ids.py SMOLLM2_GGUF   (seconds); needs transformers and gguf.

Of each chat, apply_chat_template(tokenize=True, add_generation_prompt=True) of the tokenizer that
Transformers reads in the GGUF file. None of the messages spells a special token: what becomes of
those is TideKV's own rule (they stay text), which Transformers does not have.
"""
import json
import os
import pathlib
import sys

import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "smollm2_chat_ids.json"
CHATS = [
    [{"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "Is water wet?"}],
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello! How can I help?"},
     {"role": "user", "content": "  Count: 1, 2, 12345\n\nand caf\u00e9 \U0001F60A  "}],
    [{"role": "system", "content": ""}, {"role": "user", "content": "\n"}],
]


def main():
    folder, file = os.path.split(sys.argv[1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder or ".", gguf_file=file)
    cases = []
    for messages in CHATS:
        ids = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=True,
                                            return_dict=False)
        cases.append({"messages": messages, "ids": list(ids)})
    OUT.write_text(json.dumps({"transformers": transformers.__version__, "cases": cases}, indent=1) + "\n")


main()
