#!/usr/bin/env python3
"""One run of llama.cpp in a process of its own: a job as JSON on stdin, the result on stdout.

Driven by the C interface as a C program would: ids in batches of 512, logits of the last one alone,
the cache in F16, every other parameter as llama.cpp sets it.
"""
import ctypes
import json
import sys
import time

from resident import status_bytes

BATCH_LEN = 512


def fail(message):
    sys.exit(f"llama_run: {message}")


try:
    import llama_cpp
    import numpy
except ImportError as error:
    fail(f"{error}; install bench/compare/requirements.txt into {sys.executable}'s environment")


class Model:
    def __init__(self, path, vocab_only=False):
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = vocab_only
        self.handle = llama_cpp.llama_model_load_from_file(path.encode(), params)
        if not self.handle:
            fail(f"{path}: llama.cpp cannot load this model")
        self.vocab = llama_cpp.llama_model_get_vocab(self.handle)

    def tokenize(self, text):
        data = text.encode()
        ids = (llama_cpp.llama_token * (len(data) + 8))()
        count = llama_cpp.llama_tokenize(self.vocab, data, len(data), ids, len(ids), True, False)
        if count < 0:
            fail("llama_tokenize: the text has more tokens than bytes")
        return list(ids[:count])


class Context:
    def __init__(self, model, job, context_len):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = (context_len + 255) // 256 * 256  # what llama.cpp would round up to
        params.n_batch = params.n_ubatch = BATCH_LEN
        params.n_seq_max = 1
        if hasattr(params, "n_outputs_max"):
            params.n_outputs_max = 1  # no buffer for the logits of other rows
        params.n_threads = params.n_threads_batch = job["threads"]
        params.flash_attn_type = (llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED if job["flash"] else
                                  llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED)
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F16
        self.handle = llama_cpp.llama_init_from_model(model.handle, params)
        if not self.handle:
            fail("llama_init_from_model: no context")
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(model.vocab)

    def batches(self, ids):
        """The whole prompt, made before any clock starts."""
        made = []
        for begin in range(0, len(ids), BATCH_LEN):
            part = ids[begin:begin + BATCH_LEN]
            batch = llama_cpp.llama_batch_init(len(part), 0, 1)
            batch.n_tokens = len(part)
            for row, token in enumerate(part):
                self.set_row(batch, row, token, begin + row, begin + row + 1 == len(ids))
            made.append(batch)
        return made

    @staticmethod
    def set_row(batch, row, token, position, wanted):
        batch.token[row] = token
        batch.pos[row] = position
        batch.n_seq_id[row] = 1
        batch.seq_id[row][0] = 0
        batch.logits[row] = 1 if wanted else 0

    def run(self, batches):
        """To the logits of the last row, which wait for all work."""
        for batch in batches:
            code = llama_cpp.llama_decode(self.handle, batch)
            if code != 0:
                fail(f"llama_decode returned {code}")
        logits = llama_cpp.llama_get_logits_ith(self.handle, -1)
        if not logits:
            fail("no logits of the last token")
        return logits

    def likeliest(self, logits):
        row = numpy.ctypeslib.as_array(logits, shape=(self.vocab_size,))
        if not numpy.isfinite(row).all():
            fail("a logit is not finite")
        return int(row.argmax())

    def warm_up(self, ids):
        self.run(self.batches(ids[:32]))
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.handle), True)


def prefill(job):
    """Seconds from ids to logits and, with `decode` > 0, of as many steps after that."""
    ids = job["ids"]
    own_bytes = status_bytes("VmRSS")
    context = Context(Model(job["model"]), job, len(ids) + job["decode"])
    context.warm_up(ids)
    batches = context.batches(ids)
    began = time.perf_counter()
    logits = context.run(batches)
    seconds = time.perf_counter() - began
    tokens = [context.likeliest(logits)]
    step = llama_cpp.llama_batch_init(1, 0, 1)
    step.n_tokens = 1
    decode_seconds = 0.0
    for count in range(job["decode"]):
        context.set_row(step, 0, tokens[-1], len(ids) + count, True)
        began = time.perf_counter()
        logits = context.run([step])
        decode_seconds += time.perf_counter() - began
        tokens.append(context.likeliest(logits))
    return {"prefill_seconds": seconds, "decode_seconds": decode_seconds, "tokens": tokens,
            "own_bytes": own_bytes, "peak_bytes": status_bytes("VmHWM") - own_bytes}


def start(job):
    """Seconds from before the model is loaded to the first logits."""
    began = time.perf_counter()
    context = Context(Model(job["model"]), job, len(job["ids"]) + 1)
    logits = context.run(context.batches(job["ids"]))
    seconds = time.perf_counter() - began
    return {"start_seconds": seconds, "tokens": [context.likeliest(logits)]}


def tokenize(job):
    return {"ids": Model(job["model"], vocab_only=True).tokenize(job["text"]),
            "version": llama_cpp.__version__,
            "features": llama_cpp.llama_print_system_info().decode().strip()}


def main():
    job = json.load(sys.stdin)
    # llama_cpp calls back into Python for each line; by default llama.cpp itself writes to stderr.
    llama_cpp.llama_log_set(ctypes.cast(None, llama_cpp.llama_log_callback), None)
    llama_cpp.llama_backend_init()
    result = {"prefill": prefill, "start": start, "tokenize": tokenize}[job["kind"]](job)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
