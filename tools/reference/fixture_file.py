"""Writes fixtures: F32 safetensors for what float64 computed, JSON for ids, positions and errors."""
import json
import os
import platform
from importlib.metadata import version

import numpy
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

VERSIONS = {"python": platform.python_version(), "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__, "tokenizers": tokenizers.__version__,
            "numpy": numpy.__version__, "gguf": version("gguf")}


def high_low(name, values):
    """float64 as two float32 tensors: name.hi is `values` rounded, name.lo what is left."""
    high = values.to(torch.float32)
    low = (values - high.double()).to(torch.float32)
    return {f"{name}.hi": high.contiguous(), f"{name}.lo": low.contiguous()}


def run_tensors(run, rows):
    """hidden.<layer> [rows, d] and logits [n, vocab] of a float64 run."""
    tensors = high_low("logits", run.logits)
    for layer, hidden in enumerate(run.hidden):
        tensors.update(high_low(f"hidden.{layer}", hidden[rows]))
    return tensors


def write_tensors(path, tensors):
    save_file(tensors, path)
    os.chmod(path, 0o644)


def rounded(value):
    """Floats to nine significant digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def text(value, indent=0):
    """JSON with one line for each list of scalars and each object of scalars."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(item, (dict, list)) for item in inner):
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {text(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + pad + (",\n" + pad).join(items) + "\n" + " " * indent + "}"
    return ("[\n" + pad + (",\n" + pad).join(text(item, indent + 1) for item in value) + "\n" +
            " " * indent + "]")


def write_json(path, value):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text(rounded(value)) + "\n")
