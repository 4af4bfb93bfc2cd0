"""Bytes that are no UTF-8 text, and the ids that references which take only text give for them.

TideKV keeps every such byte's value. What that means for ids is said here in terms of the
references alone:

byte-level BPE (Hugging Face's tokenizers): a run of stray bytes is a piece by itself, and the valid
    text on either side of it is text by itself. The text goes through the whole tokenizer, the run
    through its model, whose input is the byte alphabet's spelling of any bytes.
SentencePiece: a stray byte is a character that no piece has. It is given to the sentencepiece
    package as a stand-in of which that is true, and the four byte pieces it falls back to are
    replaced by the stray byte's own. Bytes given to the package directly would not do: it makes
    U+FFFD of each, which loses the value (replaces_stray_bytes says so).

What is stray is Python's word: the bytes that its decoder's error handler surrogateescape marks.
"""

import random
import re

from transformers.convert_slow_tokenizer import bytes_to_unicode

SPELLING = bytes_to_unicode()
ESCAPED = re.compile("[\udc80-\udcff]+")
STAND_INS = 0x10FF00  # of private use, in no text and no vocabulary: stand-in i is this plus byte i

AROUND = [
    "ff", "c3", "e282", "808080", "f09f98", "fffefdfc",
    # cut characters, and the same before more text, a space, a line's end, a whole character
    "f0", "f09f", "e2", "61c3", "c362", "20c320", "c30a", "c3c3a9", "c3a9c3", "f09f9841",
    "f09f98f09f9880", "e28220e282ac", "e6bce6bca2e6", "6162e2826364", "7468f09f65",
    # more of a character than there can be: overlong, surrogates, past the last, too long, 0xFE
    "c080", "c1bf", "e08080", "e09fbf", "f0808080", "f08fbfbf", "eda080", "edbfbf",
    "eda0bdedb880", "f4908080", "f5808080", "f7bfbfbf", "f888808080", "fc8480808080", "feff",
    "fffe6100", "c3a980", "e282ac82", "f09f988080",
    # NUL, white space, digits, signs and letters next to stray bytes
    "00ff00", "0000ff0000", "80004100", "ff00", "00c3", "20ff20", "2020ff2020", "0aff0a",
    "0d0aff0d0a", "09ff", "61ff62", "7468ff65", "207468ff65", "31ff32", "313233ff343536",
    "21ff21", "27ff73", "2773ff", "2e2e2eff2e2e2e", "20ff61", "ff2061", "ff20", "2020ff61",
    "c2a0ffc2a0", "efbbbfff", "efbfbdff", "ffefbfbd", "e69cacffe8aa9e", "e29681ffe29681",
    "e296ff81", "3c307846463eff", "61cc81ffcc81",
]


def inputs(special_tokens):
    """Every stray byte alone, all in one, between letters, the list above, special tokens with stray
    bytes around and inside, and random mixtures."""
    stray = bytes(range(0x80, 0x100))
    cases = [bytes([byte]) for byte in stray]
    cases += [stray, stray[::-1], b"".join(b"a" + bytes([byte]) + b" b" for byte in stray),
              bytes(range(0x100))]
    cases += [bytes.fromhex(text) for text in AROUND]
    for token in special_tokens[:2]:
        raw = token.encode()
        cases += [b"\xff" + raw + b"\xff", b"a\xe2\x82" + raw + b"\x80b", raw[:3] + b"\xff" + raw[3:]]
    rng = random.Random(29)
    letters = [b"a", b"b", b" ", b"\n", b"the", b" in", "é".encode(), "漢".encode(), b"\xe2\x82"]
    for _ in range(40):
        cases.append(b"".join(bytes([rng.randrange(256)]) if rng.random() < 0.5 else
                              rng.choice(letters) for _ in range(rng.randrange(1, 30))))
    return list(dict.fromkeys(cases))


def are_stray(data):
    """All of them; tiktoken makes pieces of bytes only after their own text."""
    return ESCAPED.fullmatch(escaped(data)) is not None


def escaped(data):
    return data.decode("utf-8", "surrogateescape")


def byte_level_ids(tokenizer, data):
    """`tokenizer`: Hugging Face's, byte-level BPE."""
    ids, text, begin = [], escaped(data), 0
    for run in ESCAPED.finditer(text):
        ids += tokenizer.encode(text[begin:run.start()], add_special_tokens=False).ids
        spelling = "".join(SPELLING[ord(mark) - 0xDC00] for mark in run.group())
        ids += [token.id for token in tokenizer.model.tokenize(spelling)]
        begin = run.end()
    return ids + tokenizer.encode(text[begin:], add_special_tokens=False).ids


def sentencepiece_ids(encode, byte_piece, data):
    """encode: text to ids, by the sentencepiece package or a tokenizer equal to it. byte_piece: a
    byte's id."""
    text = escaped(data)
    assert not any(STAND_INS <= ord(character) < STAND_INS + 0x100 for character in text)
    ids, at = encode(text.translate({0xDC00 + byte: STAND_INS + byte for byte in range(0x100)})), 0
    while at < len(ids):
        for byte in range(0x80, 0x100):
            fallen_back = [byte_piece(part) for part in chr(STAND_INS + byte).encode()]
            if ids[at:at + 4] == fallen_back:
                ids[at:at + 4] = [byte_piece(byte)]
        at += 1
    return ids


def replaces_stray_bytes(processor, data):
    """Whether the package takes each stray byte for U+FFFD."""
    return processor.encode(data) == processor.encode(ESCAPED.sub(
        lambda run: "\ufffd" * len(run.group()), escaped(data)))
