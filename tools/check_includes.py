#!/usr/bin/env python3
"""Enforces tools/layers.txt and the rules that a search can see. Usage: check_includes.py [ROOT]

Prints one line for each violation, "file:line: rule", and exits 1 if there is any.
"""
import os
import re
import sys

SOURCE = (".h", ".cc", ".cu", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A definition at the left margin that is not const: clang-format indents nothing in a namespace.
MUTABLE = re.compile(
    r"(?!.*\b(?:const|constexpr|consteval|using|typedef|return|class|struct|union|enum|friend|template"
    r"|extern|namespace|operator|case|goto|public|private|protected|static_assert)\b)"
    r"[A-Za-z_][\w:<>,*&\s]*[\w>*&]\s+\*?\w+(?:\[\w*\])*\s*(?:=[^=]|\{|;)")
# Pattern, where it is allowed (prefixes of the path), what the rule says.
SEARCHES = (
    (re.compile(r"\bdevice_ptr\("), ("src/backend/", "src/tensor/view.h"),
     "device_ptr() is for backends: only they touch device memory"),
    (re.compile(r"\s*#\s*include\s*[<\"](?:cuda|cublas|cub/|cudnn|nvml|nccl|thrust/)"),
     ("src/backend/cuda/",), "only backend/cuda includes CUDA"),
    (re.compile(r"\s*#\s*(?:el)?if(?:n?def)?\b.*\bTIDEKV_"), ("src/backend/", "src/base/"),
     "build options (#if TIDEKV_...) belong in backend/ and base/"),
    (re.compile(r"\bstd::(?:cout|cerr|clog)\b|(?<![\w])(?:std::)?f?(?:printf|puts|putchar|putc)\("
                r"|\bfmt::print\("),
     ("src/base/check.cc", "apps/", "examples/"), "the library does not print"),
    (MUTABLE, ("apps/cli/interrupt.cc",), "mutable variable at namespace scope"),
)


def read_layers(root):
    rules = {}
    with open(os.path.join(root, "tools/layers.txt"), encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if words:
                rules[words[0]] = {words[0] if word == "." else word for word in words[1:]}
    return rules


def unit_of(path, rules):
    """The longest unit that is `path` or a folder above it; None if there is none."""
    return max((u for u in rules if (path + "/").startswith(u + "/")), key=len, default=None)


def check_include(path, kind, target, rules):
    name = re.sub(r"^(src|include)/", "", path)
    if kind == "<":
        if path.startswith("include/") and re.search(r"[/.]", target):
            return f"public headers use the standard library only, not <{target}>"
        if path.endswith(".h") and target == "nlohmann/json.hpp":
            return f"<{target}> is slow to compile and stays out of headers"
        return None
    if "/" not in target:  # a neighbour
        target = f"{os.path.dirname(name)}/{target}"
    source, unit = unit_of(name, rules), unit_of(target, rules)
    if source is None:
        return "is in no unit of tools/layers.txt"
    if unit is None:
        return f"includes {target}, which is in no unit of tools/layers.txt"
    same_stem = os.path.splitext(name)[0] == os.path.splitext(target)[0]
    if unit in rules[source] or same_stem:
        return None
    return f"{source} may not include {unit} ({target})"


def check_file(root, path, rules):
    with open(os.path.join(root, path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            problem = include and check_include(path, *include.groups(), rules)
            if problem:
                yield f"{path}:{number}: {problem}"
            code = line.split("//")[0]
            for pattern, allowed, rule in SEARCHES:
                if pattern.match(code) if pattern is MUTABLE else pattern.search(code):
                    if not path.startswith(allowed):
                        yield f"{path}:{number}: {rule}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    rules = read_layers(root)
    problems, files = [], 0
    for top in ("include", "src", "apps", "examples"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for path in (os.path.relpath(os.path.join(folder, name), root) for name in sorted(names)):
                if path.endswith(SOURCE) and not path.endswith("_test.cc"):
                    files += 1
                    problems += check_file(root, path, rules)
    print("\n".join(problems) if problems else f"{files} files keep the layers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
