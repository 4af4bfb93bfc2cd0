#!/usr/bin/env python3
"""Every test and every file that docs/paper_map.md names must exist.

Tests are written `Suite.Name`, files with a slash, both between backquotes.
"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def tests():
    """Suite.Name of every test in the sources."""
    found = set()
    for folder in ("src", "apps", "tests"):
        for folder, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(".cc"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        found.update(".".join(match) for match in TEST.findall(file.read()))
    return found


def exists(path):
    return bool(glob.glob(os.path.join(ROOT, path)) or glob.glob(os.path.join(ROOT, "src", path)))


def main():
    known, missing, named = tests(), [], 0
    with open(os.path.join(ROOT, "docs/paper_map.md"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            for name in re.findall(r"`([^`]+)`", line):
                if re.fullmatch(r"[A-Z]\w*\.[A-Z]\w*", name):
                    named += 1
                    if name not in known:
                        missing.append(f"docs/paper_map.md:{number}: no test {name}")
                elif re.fullmatch(r"[\w.*/]+/[\w.*/]+", name) and not exists(name):
                    missing.append(f"docs/paper_map.md:{number}: no file {name}")
    print("\n".join(missing) if missing else f"{named} tests named, all exist")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
