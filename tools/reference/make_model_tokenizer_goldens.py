#!/usr/bin/env python3
"""Writes the ids of real models' tokenizers that tests/model_tokenizer_test.cc compares with.

Needs: pip install -r tools/reference/requirements.txt, and tools/get_model all. Run from the
repository's root; needed only when a case is added.

tests/data/tokenizers/needle.json   tokenizers, from tokenizer.json
                      smollm2.json  Transformers, from the GGUF file itself. It does not know the
                                    pre-tokeniser "smollm" and takes GPT-2's without a word, so it
                                    gets SmolLM2's own: single digits, then GPT-2's pattern
                      mistral.json  Transformers, from tokenizer.model alone; every case is also
                                    compared with the sentencepiece package
                      llama3.json   Transformers' converter of tiktoken files with Llama 3's special
                                    tokens; every case is also compared with the tiktoken package

                      sentencepiece_tiny.json  the sentencepiece package, from the valid models of
                                    fuzz/corpus/tokenizer_model
                      llama_style.json  tokenizers, from a small tokenizer.json of SentencePiece's
                                    kind with each way to put the leading space
                      composed.json tokenizers, from tokenizer_tiny.json with the normalizer NFC

A case: "text", or "hex" for bytes that are no text; "ids": special tokens left as text, nothing
put in front; "special_ids": special tokens recognised, only where that makes a difference. What the
reference is for bytes that are no text: stray_bytes.py.
"""

import json
import pathlib
import shutil
import tempfile

import sentencepiece
import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import TikTokenConverter

import stray_bytes
from make_tokenizer_golden import HARD_STRINGS, TRAINING_TEXT

OUT = pathlib.Path("tests/data/tokenizers")
MODELS = pathlib.Path("models")

MORE_STRINGS = [
    "\ufeffBOM first, then\ufeff more",
    "\u00a0\u00a0nbsp\u00a0\u00a0 \u00a0 mixed \u00a0",
    "\x00\x00 two NULs \x00 and\x00\x00more\x00",
    "  two in front, two behind  ",
    "                                                  fifty",
    "\n" * 37 + "x" + "\n" * 2 + " \n" * 5,
    "\r\n\r\n\r\n \r\n\t\r\n\r\r\n",
    "\t\t\t\tdeep\n\t\tless\n    spaces\n  \t mixed",
    "e" + "\u0301" * 40 + " z" + "\u0334\u0300\u0328\u0331" * 9,
    "\u1100\u1161\u11a8 \uac01 \u0928\u0940 \u0928\u093c \u212b \u2126 \ufb1d",
    "antidisestablishmentarianism" * 40,
    "x" * 3000,
    "ab" * 700 + "c" * 5,
    "漢字" * 300,
    "1" * 200 + " " + "12345678901234567890" * 9,
    "😀" * 50 + "👩🏽‍🚀" * 20,
    "مرحبا بالعالم שלום עולם Γειά σου Κόσμε สวัสดีชาวโลก नमस्ते दुनिया",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𓀀𓁹 \U0001f9d1\u200d\u2696\ufe0f \u0378\U000e0041",
    "th\x04e a\x04b \x04\x06\x13\x14\x16\x1d x\U00040000y \U00080000\U000f0000",
    "▁ ▁▁a ▁b▁ ▁",
    "<0x0A> <0xFF> <0x41>A <0xGG>",
    "<s>[INST] Hi [/INST] Ho</s> [INST]<unk>x</s>",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<|endoftext|>",
    "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|python_tag|><|finetune_right_pad_id|>",
    "<|reserved_special_token_0|><|reserved_special_token_1|> <|reserved_special_token_245|>|>",
    "if (a<b && c>d) { return x->y[i] % 2 == 0 ? \"yes\" : 'no'; }  // why\n",
    "{\"key\": [1, 2.5e-10, null, true], \"nested\": {\"a\": \"\\u00e9\\n\"}}",
]


def case(text, ids, special):
    """`text`: str, or bytes."""
    value = {"text": text} if isinstance(text, str) else {"hex": text.hex()}
    value["ids"] = ids
    if special != ids:
        value["special_ids"] = special
    return value


def fast_cases(tokenizer, texts, check):
    """`check`: a second reference for special tokens left as text, or None."""
    cases = []
    for text in texts:
        tokenizer.encode_special_tokens = True
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        special = tokenizer.encode(text, add_special_tokens=False).ids
        assert check is None or check(text) == ids, text
        cases.append(case(text, ids, special))
    return cases


def stray_cases(tokenizer, special_tokens, ids_of, check):
    """ids_of: a tokenizer and bytes to ids. `check`: a second reference, as in fast_cases, of bytes;
    None from it: it has no answer for these."""
    cases = []
    for data in stray_bytes.inputs(special_tokens):
        tokenizer.encode_special_tokens = True
        ids = ids_of(tokenizer, data)
        tokenizer.encode_special_tokens = False
        assert check is None or check(data) in (None, ids), data
        cases.append(case(data, ids, ids_of(tokenizer, data)))
    return cases


def spelled_out(tokens):
    """Every special token in one text, some with nothing, a letter or spaces between."""
    joins = ["", "x", " ", "  y"]
    return "".join(token + joins[i % len(joins)] for i, token in enumerate(tokens))


def special_tokens(tokenizer):
    added = tokenizer.get_added_tokens_decoder()
    return [added[id].content for id in sorted(added)]


def write(name, file, reference, bos, cases):
    value = {"file": file, "reference": reference, "bos": bos, "cases": cases}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.replace('{"text"', '\n{"text"').replace('{"hex"', '\n{"hex"')
    (OUT / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    print(OUT / name, len(cases), "cases")


def versions(*modules):
    return ", ".join(f"{module.__name__} {module.__version__}" for module in modules)


def needle(texts):
    file = MODELS / "needle/tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file))
    specials = special_tokens(tokenizer)
    cases = fast_cases(tokenizer, texts + [spelled_out(specials)], None)
    cases += stray_cases(tokenizer, specials, stray_bytes.byte_level_ids, None)
    import tokenizers
    write("needle.json", str(file), versions(tokenizers), 0, cases)


def smollm2(texts):
    file = MODELS / "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).backend_tokenizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    specials = special_tokens(tokenizer)
    cases = fast_cases(tokenizer, texts + [spelled_out(specials)], None)
    cases += stray_cases(tokenizer, specials, stray_bytes.byte_level_ids, None)
    import transformers
    write("smollm2.json", str(file), versions(transformers), -1, cases)


def mistral(texts):
    file = MODELS / "mistral-tokenizer/tokenizer.model"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(file, folder)
        (pathlib.Path(folder) / "config.json").write_text('{"model_type": "mistral"}')
        tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(file))
    specials = special_tokens(tokenizer)
    cases = fast_cases(tokenizer, texts + [spelled_out(specials)], pieces.encode)

    def byte_piece(byte):
        return pieces.piece_to_id(f"<0x{byte:02X}>")

    def by_transformers(tokenizer, data):
        return stray_bytes.sentencepiece_ids(
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids, byte_piece, data)

    def by_sentencepiece(data):
        assert stray_bytes.replaces_stray_bytes(pieces, data), data
        return stray_bytes.sentencepiece_ids(pieces.encode, byte_piece, data)

    cases += stray_cases(tokenizer, specials, by_transformers, by_sentencepiece)
    import transformers
    write("mistral.json", str(file), versions(transformers, sentencepiece), pieces.bos_id(), cases)


def llama3_special_tokens():
    names = ["begin_of_text", "end_of_text", "reserved_special_token_0",
             "reserved_special_token_1", "finetune_right_pad_id", "step_id", "start_header_id",
             "end_header_id", "eom_id", "eot_id", "python_tag", "image"]
    names += [f"reserved_special_token_{i}" for i in range(2, 256 - len(names) + 2)]
    return [f"<|{name}|>" for name in names]


def llama3(texts):
    file = MODELS / "llama3-tokenizer/tokenizer.model"
    specials = llama3_special_tokens()
    converter = TikTokenConverter(vocab_file=str(file), extra_special_tokens=specials)
    tokenizer = converter.converted()
    ranks = load_tiktoken_bpe(str(file))
    encoding = tiktoken.Encoding(
        name="llama3", pat_str=converter.pattern, mergeable_ranks=ranks,
        special_tokens={token: len(ranks) + i for i, token in enumerate(specials)})
    texts = texts + [spelled_out(specials)]
    cases = fast_cases(tokenizer, texts, encoding.encode_ordinary)
    for value in cases:
        assert encoding.encode(value["text"], allowed_special="all") == \
            value.get("special_ids", value["ids"]), value

    def by_tiktoken(data):
        return encoding._encode_bytes(data) if stray_bytes.are_stray(data) else None

    cases += stray_cases(tokenizer, specials, stray_bytes.byte_level_ids, by_tiktoken)
    import transformers
    write("llama3.json", str(file), versions(transformers, tiktoken), len(ranks), cases)


def dump(name, value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.replace('{"text"', '\n{"text"')
    (OUT / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    print(OUT / name)


def sentencepiece_tiny():
    """Texts that the small vocabularies have pieces for, and others."""
    texts = ["", " ", "  ", "a", "ab", " ab  aab\n12 \u00e9<s>\u2581", "x xx\naa", "aaab unused z",
             "aabaabab" * 20, " a  a   a    a", "\u00e9\u00e9 ab\u00e91", "zzz ab zzz", "  ab  ",
             "\u2581\u2581ab\u2581", "<s>ab</s>", "a\nb\n\nxab", "1 1  11 1a1"]
    files = []
    for file in sorted(pathlib.Path("fuzz/corpus/tokenizer_model").glob("valid_*")):
        if file.name == "valid_ranks":
            continue
        model = sentencepiece.SentencePieceProcessor(model_file=str(file))
        files.append({"file": str(file),
                      "cases": [case(text, *[model.encode(text)] * 2) for text in texts]})
    dump("sentencepiece_tiny.json", {"reference": versions(sentencepiece), "files": files})


MARK = "\u2581"
TO_MARKS = normalizers.Replace(" ", MARK)
SPACES = {  # Llama 2's own; what Transformers 5 writes for it; the newer ways; no space
    "prepend": (normalizers.Sequence([normalizers.Prepend(MARK), TO_MARKS]), None),
    "doubled": (normalizers.Sequence([TO_MARKS, normalizers.Replace(Regex(r"\A" + MARK), MARK * 2)]),
                pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=False)),
    "always": (None, pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=False)),
    "first": (None, pre_tokenizers.Metaspace(MARK, prepend_scheme="first", split=False)),
    "never": (normalizers.Sequence([TO_MARKS]), None),
}


def llama_style():
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(MARK)
    trained.train_from_iterator([TRAINING_TEXT] * 3, trainers.BpeTrainer(
        vocab_size=300, show_progress=False, limit_alphabet=60))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)]]
    tokens += sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges,
                                     unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens(tokens[:3])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    texts = HARD_STRINGS + MORE_STRINGS[:12] + ["<s>a</s> b<s> c", " <s> x", "</s>", "river</s>river"]
    variants = []
    for name, (normalizer, pre_tokenizer) in SPACES.items():
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
        whole = json.loads(tokenizer.to_str())
        variants.append({"name": name, "normalizer": whole["normalizer"],
                         "pre_tokenizer": whole["pre_tokenizer"],
                         "cases": fast_cases(tokenizer, texts, None)})
    import tokenizers
    dump("llama_style.json", {"reference": versions(tokenizers), "tokenizer": whole,
                              "variants": variants})


def composed():
    tokenizer = Tokenizer.from_file("tests/data/tokenizer_tiny.json")
    tokenizer.normalizer = normalizers.NFC()
    import tokenizers
    dump("composed.json", {"reference": versions(tokenizers),
                           "cases": fast_cases(tokenizer, HARD_STRINGS + MORE_STRINGS, None)})


def main():
    texts = HARD_STRINGS + MORE_STRINGS
    OUT.mkdir(exist_ok=True)
    needle(texts)
    smollm2(texts)
    mistral(texts)
    llama3(texts)
    sentencepiece_tiny()
    llama_style()
    composed()


if __name__ == "__main__":
    main()
