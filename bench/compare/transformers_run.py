#!/usr/bin/env python3
"""One run of Transformers on torch's CPU backend: a job as JSON on stdin, the result on stdout.

Reads the same GGUF file and holds its weights in the job's type. What loading needs on the way is
not counted: the peak is that of the run.
"""
import json
import os
import sys
import time

from resident import status_bytes


def fail(message):
    sys.exit(f"transformers_run: {message}")


try:
    import torch
    import transformers
except ImportError as error:
    fail(f"{error}; install tools/reference/requirements.txt into {sys.executable}'s "
         "environment")


def forward(model, ids, cache):
    out = model(input_ids=torch.tensor([ids]), cache=cache, use_cache=True, logits_to_keep=1)
    return out.cache, int(out.logits[0, -1].argmax())


def main():
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    own_bytes = status_bytes("VmRSS")
    folder, name = os.path.split(os.path.abspath(job["model"]))
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=getattr(torch, job["dtype"]),
        quantization_config=transformers.GgufConfig(dequantize=True)).eval()
    ids = job["ids"]
    with torch.inference_mode():
        forward(model, ids[:32], None)  # warm-up
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # VmHWM starts again at VmRSS
        began = time.perf_counter()
        cache, token = forward(model, ids, None)
        prefill_seconds = time.perf_counter() - began
        tokens = [token]
        began = time.perf_counter()
        for _ in range(job["decode"]):
            cache, token = forward(model, tokens[-1:], cache)
            tokens.append(token)
        decode_seconds = time.perf_counter() - began
    print(json.dumps({"prefill_seconds": prefill_seconds, "decode_seconds": decode_seconds,
                      "tokens": tokens, "own_bytes": own_bytes,
                      "peak_bytes": status_bytes("VmHWM") - own_bytes,
                      "version": f"{transformers.__version__}, torch {torch.__version__}"}))


if __name__ == "__main__":
    main()
