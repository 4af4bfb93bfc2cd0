#!/usr/bin/env python3
"""TideKV beside llama.cpp: the same model file, the same token ids, the same threads, in turns.

Prints a Markdown table to stdout and progress to stderr; README.md says what each row is.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
from datetime import datetime, timezone

import machine
from flops import prefill_flops
from process import CompareError
from rows import own_rows, quantity_rows, start_row
from sides import Measurement, Peer, TideKv
from table import markdown_table, result_of

ROOT = machine.ROOT
START_LEN = 10
LLAMA, TRANSFORMERS = "llama.cpp", "Transformers"


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description="TideKV beside llama.cpp; see bench/compare/README.md")
    parser.add_argument("-m", "--model", metavar="FILE", help="a GGUF file",
                        default=f"{ROOT}/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--tidekv", metavar="FILE", default=f"{ROOT}/build/release/tidekv")
    parser.add_argument("--python", metavar="FILE", default=sys.executable,
                        help="interpreter that has llama-cpp-python (this one)")
    parser.add_argument("--transformers", metavar="PYTHON",
                        help="also compare with Transformers, in this interpreter")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="of every side (all CPUs: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lengths", default="512,2000,8000",
                        help="prompt lengths; decoding and memory are of the last (%(default)s)")
    parser.add_argument("--decode", type=int, default=64, help="tokens after the longest prompt")
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--starts", type=int, default=3, help="starts of a process in each round")
    parser.add_argument("--text", metavar="FILE", default=f"{ROOT}/LICENSE",
                        help="what the prompts are made of, repeated as needed")
    parser.add_argument("--peak-gflops", type=float,
                        help="the arithmetic limit of this machine with these threads")
    parser.add_argument("--micro", metavar="FILE", default=f"{ROOT}/build/release/micro",
                        help="else measured by this program, in every round")
    parser.add_argument("--json", metavar="FILE", help="every sample, and what was measured")
    parser.add_argument("--markdown", metavar="FILE", help="the table, instead of to stdout")
    return parser.parse_args(arguments)


def checked_lengths(options):
    try:
        lengths = [int(word) for word in options.lengths.split(",")]
    except ValueError as error:
        raise CompareError(f"--lengths: '{options.lengths}' is not a list like 512,2000,8000") \
            from error
    if not all(a < b for a, b in zip([0, *lengths], lengths)):
        raise CompareError(f"--lengths: '{options.lengths}' must rise, from 1 on")
    for name in ("threads", "rounds", "decode", "budget", "starts"):
        if getattr(options, name) < 1:
            raise CompareError(f"--{name}: {getattr(options, name)}; must be 1 or more")
    if options.peak_gflops is not None and not options.peak_gflops > 0:
        raise CompareError(f"--peak-gflops: {options.peak_gflops}; must be more than 0")
    return lengths


def check_files(options):
    """Before any work: everything that will be read or run is there."""
    if not os.path.isfile(options.model):
        raise CompareError(f"-m: {options.model}: no such file; expected a GGUF file "
                           "(tools/get_model smollm2 fetches one)")
    programs = [("--tidekv", options.tidekv), ("--python", options.python)]
    if options.transformers:
        programs.append(("--transformers", options.transformers))
    for flag, program in programs:
        if shutil.which(program) is None:
            raise CompareError(f"{flag}: {program}: no such program")
    if options.peak_gflops is None and shutil.which(options.micro) is None:
        raise CompareError(f"no arithmetic limit: --micro: {options.micro}: no such program; "
                           "build it, or give --peak-gflops")
    for path in filter(None, (options.json, options.markdown)):
        write(path, "")  # a path that cannot be written should not cost a run


def prompt_ids(options, tidekv, length, folder):
    """(text, ids): the text often enough for `length` ids, and all its ids."""
    with open(options.text, encoding="utf-8") as file:
        text = file.read().rstrip("\n") + " "
    repeated, path = text, os.path.join(folder, "text.txt")
    while True:
        write(path, repeated)
        ids = tidekv.tokenize(path)
        if len(ids) >= length:
            return repeated, ids
        repeated += text * (length // len(ids))


def check_same_ids(ours, theirs):
    if ours == theirs:
        return
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
              min(len(ours), len(theirs)))
    raise CompareError(f"the programs read the text differently: token {at} is "
                       f"{ours[at:at + 3]} in TideKV and {theirs[at:at + 3]} in llama.cpp "
                       f"({len(ours)} and {len(theirs)} tokens)")


def make_peers(options, exec_seconds):
    job = {"model": options.model, "threads": options.threads}
    peers = {LLAMA: [Peer(f"flash attention {'on' if flash else 'off'}", options.python,
                          "llama_run.py", job | {"flash": flash}, exec_seconds)
                     for flash in (True, False)]}
    if options.transformers:
        peers[TRANSFORMERS] = [Peer(dtype, options.transformers, "transformers_run.py",
                                    job | {"dtype": dtype}, exec_seconds)
                               for dtype in ("bfloat16", "float32")]
    return peers


class Samples:
    """By side, then by `measurement.quantity`: all samples in the order they were taken."""

    def __init__(self):
        self.of = {}

    def add(self, side, measurement, values):
        quantities = self.of.setdefault(side, {})
        for name, samples in values.items():
            quantities.setdefault(f"{measurement}.{name}", []).extend(samples)


def take_turns(sides, measurements, options, limit, keep):
    """Every measurement on every side in every round; who begins changes from turn to turn. `keep`
    gets all samples after each turn."""
    samples, turn = Samples(), 0
    for count in range(options.rounds):
        limit.append(options.peak_gflops or machine.peak_gflops(options.micro, options.threads))
        for measurement in measurements:
            first = turn % len(sides)
            turn += 1
            for key, side in sides[first:] + sides[:first]:
                values = side.measure(measurement)
                samples.add(key, measurement.name, values)
                shown = ", ".join(f"{name} {value[-1]:.4g}" for name, value in values.items())
                say(f"round {count + 1}/{options.rounds}, {measurement.name}, {key}: {shown}")
            keep(samples.of)
    return samples.of


def add_limit_shares(ours, shape, lengths, gflops):
    for length in lengths:
        least_seconds = prefill_flops(shape, length) / (gflops * 1e9)
        ours[f"{length}.limit_share"] = [least_seconds / seconds
                                         for seconds in ours[f"{length}.prefill_seconds"]]


def note_first_tokens(tidekv, peers):
    """Near ties may differ, since the arithmetic does; many differences would mean a mistake."""
    for program, variants in peers.items():
        for peer in variants:
            for name, token in peer.first_tokens.items():
                if token != tidekv.first_tokens[name]:
                    say(f"note: after prompt {name} the likeliest token is "
                        f"{tidekv.first_tokens[name]} in TideKV, {token} in {program}, {peer.name}")


def make_measurements(options, lengths, ids):
    """Of the longest prompt also the decoding; and starts."""
    measurements = [Measurement(str(length), ids[:length], 0) for length in lengths]
    measurements[-1] = measurements[-1]._replace(decode=options.decode)
    return [*measurements, Measurement("start", ids[:START_LEN], 0, options.starts)]


def describe(options, lengths, tidekv, llama, exec_seconds):
    """What is measured, on what, before it is."""
    return {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "cpu": machine.cpu_name(), "threads": options.threads, "rounds": options.rounds,
            "model": os.path.basename(options.model),
            "model_sha256": machine.sha256_of(options.model),
            "commit": machine.commit(), "tidekv": tidekv.version,
            "backend": tidekv.shape.get("backend"), "llama_cpp_python": llama["version"],
            "llama_features": llama["features"], "python": sys.version.split()[0],
            "environment": machine.environment(), "exec_seconds": exec_seconds,
            "lengths": lengths, "decode": options.decode,
            "budget": options.budget, "load_before": os.getloadavg(), "peak_gflops": []}


def measure(options, lengths, folder):
    say("preparing")
    tidekv = TideKv(options.tidekv, options.model, options.threads, options.budget, folder)
    exec_seconds = machine.exec_seconds()
    peers = make_peers(options, exec_seconds)
    text, ids = prompt_ids(options, tidekv, lengths[-1], folder)
    llama = peers[LLAMA][0].run(kind="tokenize", text=text)
    check_same_ids(ids, llama["ids"])
    about = describe(options, lengths, tidekv, llama, exec_seconds)
    if busy := busy_text(about):
        say(busy)

    def keep(samples):
        if options.json:
            write(options.json, as_json(about, samples, {}))

    sides = [("tidekv", tidekv)] + [(f"{program}, {peer.name}", peer)
                                    for program, variants in peers.items() for peer in variants]
    samples = take_turns(sides, make_measurements(options, lengths, ids), options,
                         about["peak_gflops"], keep)
    about["load_after"] = os.getloadavg()
    if TRANSFORMERS in peers:
        about["transformers"] = peers[TRANSFORMERS][0].version
    add_limit_shares(samples["tidekv"], tidekv.shape, lengths, max(about["peak_gflops"]))
    note_first_tokens(tidekv, peers)
    return about, samples, peers


def busy_text(about):
    """Whoever waits longer for its threads loses more to other programs: no ratio survives them."""
    load = about["load_before"][0]
    if load < 0.5:
        return ""
    return (f"WARNING: other programs ran before and probably during this (load {load:.1f}): "
            "the ratios do not hold.")


def make_tables(options, lengths, samples, peers):
    """By program: the rows' results; TideKV's own rows, and the bars, are the first peer's."""
    tables = {}
    for program, variants in peers.items():
        rows = quantity_rows(lengths, options.budget)
        if all(peer.can_start for peer in variants):
            rows.append(start_row(START_LEN))
        if not tables:
            rows += own_rows(lengths, options.threads)
        else:
            rows = [row._replace(bar=None) for row in rows]
        theirs = {peer.name: samples[f"{program}, {peer.name}"] for peer in variants}
        tables[program] = [result_of(row, samples["tidekv"], theirs) for row in rows]
    return tables


def markdown(about, tables):
    head = (f"{about['cpu']}, threads: {about['threads']}, rounds: {about['rounds']}, load "
            f"{about['load_before'][0]:.1f} before and {about['load_after'][0]:.1f} after; "
            f"{about['model']}; commit {about['commit'][:12]}, backend {about['backend']}; "
            f"llama-cpp-python {about['llama_cpp_python']}; arithmetic limit "
            f"{max(about['peak_gflops']):.0f} GFLOP/s; a process that does nothing takes "
            f"{about['exec_seconds'] * 1e3:.1f} ms, which is added to llama.cpp's start.\n")
    busy = busy_text(about)
    return "\n".join([head, *([busy + "\n"] if busy else []), *(markdown_table(results, program)
                              for program, results in tables.items())])


def write(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CompareError(f"{path}: cannot write: {error.strerror}") from error


def as_json(about, samples, tables):
    rows = {program: [{key: value._asdict() if hasattr(value, "_asdict") else value
                       for key, value in result.items()} for result in results]
            for program, results in tables.items()}
    return json.dumps({"about": about, "rows": rows, "samples": samples}, indent=1) + "\n"


def main(arguments):
    options = parse_arguments(arguments)
    try:
        lengths = checked_lengths(options)
        check_files(options)
        with tempfile.TemporaryDirectory() as folder:
            about, samples, peers = measure(options, lengths, folder)
        tables = make_tables(options, lengths, samples, peers)
        if options.json:
            write(options.json, as_json(about, samples, tables))
        if options.markdown:
            write(options.markdown, markdown(about, tables))
        else:
            print(markdown(about, tables))
    except (CompareError, OSError, UnicodeDecodeError) as error:
        say(f"compare: error: {error}")
        return 1
    except KeyboardInterrupt:
        say("compare: interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
