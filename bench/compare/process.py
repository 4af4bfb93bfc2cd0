"""Child processes: one for every measurement, so that none inherits another's memory or caches."""
import json
import os
import subprocess
import tempfile
import time


class CompareError(Exception):
    """What went wrong, for the user."""


def tail_of(text, lines=8):
    return "\n".join("    " + line for line in text.strip().splitlines()[-lines:])


def run(command, text_in=None, env=None):
    """(stdout, stderr, seconds from before the start to after the end)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
            tempfile.TemporaryFile() as source:
        source.write((text_in or "").encode())
        source.seek(0)
        began = time.perf_counter()
        try:
            done = subprocess.run(command, stdin=source, stdout=out, stderr=err, env=env)
        except OSError as error:
            raise CompareError(f"{command[0]}: cannot start: {error.strerror}") from error
        seconds = time.perf_counter() - began
        out.seek(0)
        err.seek(0)
        stdout = out.read().decode(errors="replace")
        stderr = err.read().decode(errors="replace")
    if done.returncode != 0:
        how = (f"killed by signal {-done.returncode}" if done.returncode < 0
               else f"exit code {done.returncode}")
        shown = " ".join(str(word) for word in command[:3])
        raise CompareError(f"{shown} ...: {how}; it said last:\n{tail_of(stderr or stdout)}")
    return stdout, stderr, seconds


def run_script(python, script, job):
    """Gives a script of this folder its job as JSON; its result is the last line it prints."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
    stdout, _, _ = run([python, path], json.dumps(job))
    lines = stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        raise CompareError(f"{script}: printed no result:\n{tail_of(stdout)}") from error
