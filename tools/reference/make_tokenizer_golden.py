#!/usr/bin/env python3
"""Writes what the tokenizer tests compare with: two small tokenizer.json files and golden ids.

Needs: pip install tokenizers. Run from the repository's root; needed only when a case is added.

tests/data/tokenizer_tiny.json        Llama-3 style, merges as "a b", below 4 KB, written by hand here
tests/data/tokenizer_gpt2_style.json  trained on the text below: other pattern, merges as pairs,
                                      ignore_merges, added tokens of every kind
tests/data/tokenizer_golden.json      ids that Hugging Face's tokenizers gives, for these and needle
"""

import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

DATA = pathlib.Path("tests/data")
NEEDLE = pathlib.Path("models/needle")

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

TRAINING_TEXT = """
A river keeps no ledger, yet every stone it passes is counted somewhere downstream. The ferryman
said so twice, once in the morning and once when the lamps were lit; nobody wrote it down.
Questions were asked: how wide is it? How deep? It's 37 fathoms, they'd say, or 370, or 3,700.
Where the path ends, the heather begins. Where the heather ends there's only weather.
"You'll want a coat," she said. "I've had one since '98," he answered, "and it isn't paid for."
Der Fluß fließt langsam über die Wiesen; die Brücke trägt noch. À l'été, la forêt était déjà jaune.
Река медленно течёт, и мост ещё держится. 川はゆっくり流れ、橋はまだ立っている。
for (int i = 0; i < 10; ++i) {\n\tsum += weights[i] * values[i];\n}\n
"""

HARD_STRINGS = [
    "",
    " ",
    "a",
    "Café déjà vu — 123 😊",
    "1234567",
    "0 12 345 6789 01234567890123456789",
    "3.14159,2,718.28",
    "\t",
    "\tif x:\n\t\treturn y\n",
    "line one\r\nline two\r\n\r\nline four\r",
    "\n\n\n\n\n\n\n\n",
    "a\n\n\nb \n \n c",
    "   leading",
    "trailing   ",
    "      ",
    "a  b   c    d     e",
    " \t \n \t ",
    "👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇫🇷 ☎️",
    "日本語のテキストと中文文本 한국어",
    "e\u0301 vs \u00e9, a\u0308\u0323\u0301, \u0301alone",
    "\u0e01\u0e33\u0e25\u0e31\u0e07 \u0915\u094d\u0937\u093f",
    "\x00",
    "a\x00b\x01c\x1bd\x7fe",
    "\u0085\u00a0\u1680\u180e\u2003\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff",
    "no\u00a0break\u00a0space \u00a0 here",
    "word\u180eword \u180e x",
    "² ½ Ⅷ ① ٣٤٥ १२३ 𝟘𝟙𝟚𝟛 x² 10½",
    "I'm we're they've he's she'd it'll don't",
    "I'M WE'RE THEY'VE HE'S SHE'D IT'LL DON'T",
    "'s 'S 'LL 'll ' s ''s 'ſ",
    "o'clock rock'n'roll 'tis ’s ‘quoted’",
    "MixedСмешанныйΜικτό混合",
    "snake_case camelCase kebab-case UPPER_CASE x1y2z3",
    "!!! ??? ... --- *** <<<>>> ((())) [[]] {}",
    "https://example.org/a?b=c&d=e#f user@example.org",
    "\"quoted\" 'single' `tick` \\back\\slash",
    "∀x∈ℝ: ⌈x⌉ ≥ x → ∑ᵢ αᵢ² € £ ¥ §",
    "ﬁ ﬂ ß ẞ İ ı ſ K Å",
    "\U0001f600\U0010ffff\ue000\ufffd\ufffe",
    "supercalifragilisticexpialidocious" * 8,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Ġ Ċ ĉ â ĠĠĠ",
    "hazel-clover hazel-clover's xhazel-cloverx hazel-clove",
    "a <mask> b<mask>c  <mask>  d",
    "pad here [sep] there[sep]  x",
    "river river's the river",
    "The river keeps Questions; the weather there's",
    "<|begin_of_text|>",
    "<|begin_of_text|><|begin_of_text|>twice",
    "a<|end_of_text|>b <|pad|> c",
    "<|begin_of_text <|end_of_text|",
    "<|end|><|end|>",
    "<|bos|>x<|bos|>",
    "in the in thein the 123123",
    " The secret number of orange-sparrow is 8812311.",
    "\nQuestion: What is the secret number of hazel-clover?\nAnswer: The secret number of hazel-clover is",
    " 8779956.\n",
]


def added_token(id, content, **flags):
    token = dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False,
                 normalized=False, special=False)
    token.update(flags)
    return token


def write_json(path, value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
    print(path, len(text.encode("utf-8")), "bytes")


def write_tiny():
    merges = ["t h", "th e", "i n", "Ġ the", "Ġ in", "1 2", "12 3", "à ©", "Ċ Ċ"]
    tokens = ["<|bos|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokens += [merge.replace(" ", "") for merge in merges]
    value = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added_token(0, "<|bos|>", special=True),
                         added_token(len(tokens), "in the")],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": LLAMA3_PATTERN}, "behavior": "Isolated",
             "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False,
             "trim_offsets": True}]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [0], "tokens": ["<|bos|>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": merges},
    }
    path = DATA / "tokenizer_tiny.json"
    write_json(path, value)
    assert path.stat().st_size <= 4096


def write_gpt2_style():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=640, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TRAINING_TEXT] * 3, trainer)
    tokenizer.add_special_tokens(["<|end|>", AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("hazel-clover", normalized=False),
                          AddedToken("[sep]", rstrip=True, normalized=False),
                          AddedToken("river", normalized=True)])
    value = json.loads(tokenizer.to_str())
    # Whole words whose last merge is gone: found only because merges are ignored for them.
    value["model"]["merges"] = value["model"]["merges"][:-60]
    write_json(DATA / "tokenizer_gpt2_style.json", value)


def fnv1a(ids):
    digest = 0xCBF29CE484222325
    for id in ids:
        for byte in id.to_bytes(4, "little"):
            digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    return f"{digest:016x}"


def golden_cases(tokenizer, texts):
    """ids: with what the post-processor adds, special tokens left as text; special_ids: only where
    parsing special tokens makes a difference, and without what the post-processor adds."""
    cases = []
    for text in texts:
        tokenizer.encode_special_tokens = True
        case = {"text": text, "ids": tokenizer.encode(text).ids}
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        special = tokenizer.encode(text, add_special_tokens=False).ids
        if special != plain:
            case["special_ids"] = special
        cases.append(case)
    return cases


def needle_prompts(tokenizer):
    prompts = [example["prompt"] for example in json.loads((NEEDLE / "examples.json").read_text())]
    tokenizer.encode_special_tokens = True
    encoded = [tokenizer.encode(prompt).ids for prompt in prompts]
    return {"full": encoded[:2], "num_ids": [len(ids) for ids in encoded],
            "fnv1a": [fnv1a(ids) for ids in encoded]}


def main():
    write_tiny()
    write_gpt2_style()
    golden = {"tokenizers": []}
    for name in ["models/needle/tokenizer.json", "tests/data/tokenizer_tiny.json",
                 "tests/data/tokenizer_gpt2_style.json"]:
        tokenizer = Tokenizer.from_file(name)
        golden["tokenizers"].append({"file": name, "cases": golden_cases(tokenizer, HARD_STRINGS)})
    golden["needle_prompts"] = needle_prompts(Tokenizer.from_file(str(NEEDLE / "tokenizer.json")))
    write_json(DATA / "tokenizer_golden.json", golden)


if __name__ == "__main__":
    main()
