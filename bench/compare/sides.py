"""The programs that are compared. Each turns a measurement into numbers by quantity."""
import json
import os
from typing import NamedTuple

from process import CompareError, run, run_script


class Measurement(NamedTuple):
    name: str  # "512", "8000", "start"
    ids: list
    decode: int  # tokens after the prompt; more than 0 at one length only
    starts: int = 0  # more than 0: time whole starts, that many


def rates(prompt_len, seconds):
    return {"prefill_seconds": [seconds], "prefill_rate": [prompt_len / seconds]}


class TideKv:
    name = "tidekv"

    def __init__(self, program, model, threads, budget, folder):
        self.program, self.model, self.threads = program, model, threads
        self.budget, self.folder = budget, folder
        self.first_tokens = {}
        self.version = run([program, "--version"])[0].strip()
        self.shape = json.loads(run([program, "inspect", "-m", model, "--report", "json"])[0])

    def tokenize(self, text_file):
        stdout, _, _ = run([self.program, "tokenize", "-m", self.model, "-f", text_file, "--ids"])
        return json.loads(stdout)

    def run(self, ids, num_new, method, threads=None):
        """The report of one run, and the seconds the whole process took."""
        tokens = os.path.join(self.folder, "ids.txt")
        report_file = os.path.join(self.folder, "report.json")
        with open(tokens, "w", encoding="ascii") as file:
            file.write(" ".join(map(str, ids)))
        _, _, seconds = run([self.program, "run", "-m", self.model, "--tokens", tokens,
                             "-n", str(num_new), "--method", method, "--budget", str(self.budget),
                             "--temp", "0", "--ignore-eos", "-t", str(threads or self.threads),
                             "--report-file", report_file])
        with open(report_file, encoding="utf-8") as file:
            report = json.load(file)
        if report["prompt_len"] != len(ids) or report["generated_tokens"] != num_new:
            raise CompareError(f"tidekv ran {report['prompt_len']} prompt tokens and generated "
                               f"{report['generated_tokens']}; asked for {len(ids)} and {num_new}")
        return report, seconds

    def measure(self, measurement):
        ids = measurement.ids
        if measurement.starts:
            runs = [self.run(ids, 1, "tidekv-snap") for _ in range(measurement.starts)]
            self.first_tokens[measurement.name] = runs[-1][0]["tokens"][0]
            return {"start_seconds": [seconds for _, seconds in runs]}
        report, _ = self.run(ids, measurement.decode + 1, "tidekv-snap")
        values = rates(len(ids), report["prefill_seconds"])
        values["compress_share"] = [report["compress_seconds"] / report["prefill_seconds"]]
        values["peak_bytes"] = [report["process_peak_bytes"]]
        if measurement.decode:
            values["decode_rate"] = [measurement.decode / report["decode_seconds"]]
            values |= self.measure_long(measurement, values["prefill_seconds"][0])
        else:
            self.first_tokens[measurement.name] = report["tokens"][0]
        return values

    def measure_long(self, measurement, seconds):
        ids, decode = measurement.ids, measurement.decode
        full, _ = self.run(ids, decode + 1, "full")
        self.first_tokens[measurement.name] = full["tokens"][0]
        alone, _ = self.run(ids, 1, "tidekv-snap", threads=1)
        values = {"full_" + name: samples
                  for name, samples in rates(len(ids), full["prefill_seconds"]).items()}
        values["full_decode_rate"] = [decode / full["decode_seconds"]]
        values["full_peak_bytes"] = [full["process_peak_bytes"]]
        values["one_thread_seconds"] = [alone["prefill_seconds"]]
        values["thread_speedup"] = [alone["prefill_seconds"] / seconds]
        return values


class Peer:
    """A variant of another program, run by one of this folder's scripts."""

    def __init__(self, name, python, script, job, exec_seconds):
        self.name, self.python, self.script, self.job = name, python, script, job
        self.exec_seconds = exec_seconds
        self.can_start = script == "llama_run.py"
        self.first_tokens = {}
        self.version = None

    def run(self, **job):
        return run_script(self.python, self.script, self.job | job)

    def measure(self, measurement):
        if measurement.starts:
            return self.measure_starts(measurement)
        result = self.run(kind="prefill", ids=measurement.ids, decode=measurement.decode)
        self.first_tokens[measurement.name] = result["tokens"][0]
        self.version = result.get("version")
        values = rates(len(measurement.ids), result["prefill_seconds"])
        values["peak_bytes"] = [result["peak_bytes"]]
        values["own_bytes"] = [result["own_bytes"]]
        if measurement.decode:
            values["decode_rate"] = [measurement.decode / result["decode_seconds"]]
        return values

    def measure_starts(self, measurement):
        if not self.can_start:
            return {}
        results = [self.run(kind="start", ids=measurement.ids)
                   for _ in range(measurement.starts)]
        self.first_tokens[measurement.name] = results[-1]["tokens"][0]
        inside = [result["start_seconds"] for result in results]
        return {"inside_seconds": inside,
                "start_seconds": [seconds + self.exec_seconds for seconds in inside]}
