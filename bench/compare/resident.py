"""Resident memory of this process, from /proc."""


def status_bytes(field):
    """`field`: VmRSS (now) or VmHWM (the highest so far)."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")
