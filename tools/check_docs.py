#!/usr/bin/env python3
"""What the documents name must exist, and what they quote must stand there.

In every document: files (a slash, between backquotes, from the root or from src/) and tests
(`Suite.Name`). Code fenced as ```cpp PATH is in that file, line by line; a line `// ...` stands for
lines left out.
"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DOCUMENTS = ("*.md", "docs/**/*.md", "tools/**/*.md", "bench/**/*.md", "models/*/*.md")
TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
FENCE = re.compile(r"^```cpp (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Files have one of these in front; other names with a slash are paths of a build or of a model.
FOLDERS = r"(?:src|include|apps|bench|tests|fuzz|examples|docs|tools|cmake|models|\.ci)"
MODULES = r"(?:base|tensor|memory|io|text|chat|backend|cache|model|compress|prefill|engine)"
FILE = re.compile(rf"(?:{FOLDERS}|{MODULES})/[\w.*/]+")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tests():
    """Suite.Name of every test in the sources."""
    found = set()
    for folder in ("src", "apps", "tests", "bench"):
        for path in glob.glob(os.path.join(ROOT, folder, "**/*.cc"), recursive=True):
            found.update(".".join(match) for match in TEST.findall(read(path)))
    return found


def exists(path):
    return bool(glob.glob(os.path.join(ROOT, path)) or glob.glob(os.path.join(ROOT, "src", path)))


def is_quoted(text, code):
    """Each part of `code` between lines `// ...` is in `text`, in this order."""
    at = 0
    for part in re.split(r"^\s*// \.\.\.\n", code, flags=re.MULTILINE):
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def problems_in(document, known):
    """(line, problem) of one document, and how many names and quotations were looked at."""
    text, problems, looked_at = read(document), [], 0
    for match in FENCE.finditer(text):
        path, code = match.groups()
        looked_at += 1
        if not exists(path):
            problems.append((line_of(text, match.start()), f"no file {path}"))
        elif not is_quoted(read(path), code):
            problems.append((line_of(text, match.start()), f"{path} does not hold this code"))
    for match in re.finditer(r"`([^`\n]+)`", text):
        name = match.group(1)
        if re.fullmatch(r"[A-Z]\w*\.[A-Z]\w*", name):
            looked_at += 1
            if name not in known:
                problems.append((line_of(text, match.start()), f"no test {name}"))
        elif FILE.fullmatch(name):
            looked_at += 1
            if not exists(name):
                problems.append((line_of(text, match.start()), f"no file {name}"))
    return problems, looked_at


def main():
    known, failed, total = tests(), False, 0
    documents = sorted({os.path.relpath(path, ROOT) for pattern in DOCUMENTS
                        for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)})
    for document in documents:
        problems, looked_at = problems_in(document, known)
        total += looked_at
        for line, problem in problems:
            failed = True
            print(f"{document}:{line}: {problem}")
    if not failed:
        print(f"{len(documents)} documents, {total} names and quotations, all right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
