"""What was measured, and on what."""
import hashlib
import json
import os
import shutil
import statistics
import subprocess

from process import CompareError, run

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def cpu_name():
    """The model's name, which virtual machines shorten, and the numbers that say which it is."""
    fields = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    numbers = ", ".join(f"{name} {fields[key]}" for name, key in
                        (("family", "cpu family"), ("model", "model"), ("stepping", "stepping"))
                        if key in fields)
    name = fields.get("model name", "unknown CPU")
    return f"{name} ({numbers})" if numbers else name


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def commit():
    """HEAD of this source tree, `+` if tracked files differ from it."""
    try:
        git = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT]
        head, state = (subprocess.run(git + words, stdout=subprocess.PIPE, check=True, text=True,
                                      stderr=subprocess.DEVNULL).stdout
                       for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"]))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip() + ("+" if state.strip() else "")


def environment():
    """Variables that change how one of the programs uses the machine."""
    return {name: value for name, value in sorted(os.environ.items())
            if name.startswith(("OMP_", "GOMP_", "KMP_", "GGML_", "MKL_", "TIDEKV_"))}


def exec_seconds():
    """Median time to start and end a program that does nothing."""
    program = shutil.which("true")
    if program is None:
        raise CompareError("no program `true` to time the start of a process with")
    return statistics.median(run([program])[2] for _ in range(20))


def peak_gflops(micro, threads):
    """The best of micro's register-only loops on this machine, now. It measures them before any
    operation, so one operation is run once for their sake."""
    names = run([micro, "--list"])[0].split()
    stdout, _, _ = run([micro, "--filter", names[0] if names else "", "--seconds", "0",
                        "-t", str(threads), "-o", "json"])
    try:
        return max(loop["flops_per_second"] for loop in json.loads(stdout)["peak_loops"]) / 1e9
    except (ValueError, KeyError, TypeError) as error:
        raise CompareError(f"{micro}: its JSON has no peak_loops with flops_per_second; "
                           "give --peak-gflops") from error
