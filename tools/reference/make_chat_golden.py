#!/usr/bin/env python3
"""Writes tests/data/chat_golden.json: what Transformers renders from chat templates.

Usage: make_chat_golden.py SMOLLM2_GGUF   (seconds); needs transformers, jinja2 and gguf.

chats: whole templates, SmolLM2's own (read from its GGUF file) and those of chat_templates.py, on
the chats there, by a tokenizer's apply_chat_template(tokenize=False). language: one line for each
feature of the template language, by the same environment. An "error" is the exception's message;
of errors only those that a template raises itself are compared word by word.
"""
import datetime
import json
import pathlib
import sys

import gguf
import jinja2
import tokenizers
import transformers
from transformers.utils import chat_template_utils

from chat_language_cases import LANGUAGE, LANGUAGE_CHAT
from chat_templates import CHATS, FAMILIES

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "chat_golden.json"
NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def smollm2_template(path):
    field = gguf.GGUFReader(path).fields["tokenizer.chat_template"]
    return field.contents()


def rendered(render):
    """The text, or what went wrong: the template's own refusal word by word."""
    try:
        return {"text": render()}
    except jinja2.exceptions.TemplateError as error:
        own = type(error) is jinja2.exceptions.TemplateError
        return {"refusal" if own else "error": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def chat_cases(tokenizer, template):
    cases = []
    for number, messages in enumerate(CHATS):
        for prompt in (True, False):
            result = rendered(lambda: tokenizer.apply_chat_template(
                messages, chat_template=template, tokenize=False, add_generation_prompt=prompt))
            cases.append({"chat": number, "add_generation_prompt": prompt, **result})
    return cases


def language_cases():
    def render(template):
        texts, _ = chat_template_utils.render_jinja_template(
            [LANGUAGE_CHAT], chat_template=template, add_generation_prompt=True, **TOKENS)
        return texts[0]
    return [{"template": template, **rendered(lambda: render(template))} for template in LANGUAGE]


def main():
    chat_template_utils.datetime = FixedClock
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.BPE()), **TOKENS)
    families = {"smollm2": smollm2_template(sys.argv[1]), **FAMILIES}
    golden = {
        "versions": {"transformers": transformers.__version__, "jinja2": jinja2.__version__},
        "tokens": TOKENS, "now": NOW.isoformat(), "chats": CHATS,
        "templates": [{"name": name, "template": template, "cases": chat_cases(tokenizer, template)}
                      for name, template in families.items()],
        "language_chat": LANGUAGE_CHAT, "language": language_cases(),
    }
    text = json.dumps(golden, ensure_ascii=False, indent=1)
    GOLDEN.write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
