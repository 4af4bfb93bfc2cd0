#!/usr/bin/env python3
"""Writes src/chat/template_case_tables.cc: upper and lower case as Python's str has them.

Only characters beyond ASCII whose other case is one character; those whose other case is several,
or depends on its place in the word, are listed apart. Format the file with clang-format.
"""
import pathlib

TABLES = pathlib.Path(__file__).resolve().parents[2] / "src" / "chat" / "template_case_tables.cc"
CHARACTERS = [c for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000]
CAPITAL_SIGMA = 0x3A3  # its lower case depends on what follows


def mapping_ranges(mapped):
    """[first, last, stride, delta] of the characters that `mapped` gives one other character."""
    ranges = []
    for code in CHARACTERS:
        other = mapped(chr(code))
        if len(other) != 1 or other == chr(code) or code == CAPITAL_SIGMA and other == "\u03c3":
            continue
        delta = ord(other) - code
        last = ranges[-1] if ranges else None
        step = code - last[1] if last else 0
        if last and last[3] == delta and (step == last[2] or last[2] == 0 and step <= 2):
            last[1:3] = [code, step]
        else:
            ranges.append([code, code, 0, delta])
    return [[first, last, stride or 1, delta] for first, last, stride, delta in ranges]


def code_ranges(wanted):
    ranges = []
    for code in filter(wanted, CHARACTERS):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def table(kind, name, rows):
    items = ", ".join("{" + ", ".join(f"0x{v:X}" if i < 2 else str(v) for i, v in enumerate(row)) +
                      "}" for row in rows)
    return f"constexpr std::array<{kind}, {len(rows)}> {name} = {{{{{items}}}}};\n\n"


def main():
    text = ('// Written by tools/reference/make_case_tables.py from Python 3.11 (Unicode 14).\n'
            '#include "chat/template_case_tables.h"\n\n#include <array>\n\n'
            'namespace tidekv {\nnamespace {\n\n')
    text += table("CaseRange", "kUpper", mapping_ranges(str.upper))
    text += table("CaseRange", "kLower", mapping_ranges(str.lower))
    text += table("CodeRange", "kNoSimpleUpper", code_ranges(lambda c: len(chr(c).upper()) > 1))
    text += table("CodeRange", "kNoSimpleTitle",
                  code_ranges(lambda c: chr(c).title() != chr(c).upper()))
    text += ('}  // namespace\n\n'
             'std::span<const CaseRange> upper_case_ranges() { return kUpper; }\n'
             'std::span<const CaseRange> lower_case_ranges() { return kLower; }\n'
             'std::span<const CodeRange> no_simple_upper() { return kNoSimpleUpper; }\n'
             'std::span<const CodeRange> no_simple_title() { return kNoSimpleTitle; }\n\n'
             '}  // namespace tidekv\n')
    TABLES.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
