"""The same four rates by fio, where the machine has it: more requests at once than threads of Python make."""

from __future__ import annotations

import json
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = dict[str, object]

# field of the result: (what fio does, size of a request, how many at once, what it counts)
_JOBS = {
    "write_bytes_per_second": ("write", "1M", 8, "bw_bytes"),
    "read_bytes_per_second": ("read", "1M", 8, "bw_bytes"),
    "write_iops": ("randwrite", "4k", 64, "iops"),
    "read_iops": ("randread", "4k", 64, "iops"),
}
_START_SECONDS = 10.0
_MIB = 1 << 20


def run_fio(fio: str, descriptor: int, *, file_bytes: int, seconds: float) -> Row:
    """Rates of the file behind ``descriptor``, past the page cache; {} where this fio or file system cannot do it."""
    found: Row = {}
    for name, (kind, block, depth, counted) in _JOBS.items():
        job = [f"--rw={kind}", f"--bs={block}", f"--iodepth={depth}", f"--size={file_bytes}"]
        side = _run(fio, descriptor, job, seconds).get("write" if "write" in kind else "read")
        rate = _number(side, counted)
        if not rate:
            return {}
        if kind == "write":
            # What was not written yet would be read at no cost for the disk
            file_bytes = min(file_bytes, round(_number(side, "io_bytes") or 0) // _MIB * _MIB)
        found[name] = round(rate)
    return {**found, "direct": True}


def _run(fio: str, descriptor: int, job: list[str], seconds: float) -> Row:
    """What fio says of one job; {} where it fails."""
    fixed = [
        "--name=accept",
        f"--filename=/proc/self/fd/{descriptor}",
        f"--runtime={max(1, round(seconds))}",
        *("--time_based", "--direct=1", "--ioengine=libaio", "--thread", "--invalidate=0", "--output-format=json"),
    ]
    try:
        done = subprocess.run(
            [fio, *fixed, *job],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=seconds + _START_SECONDS,
            pass_fds=(descriptor,),
            env={},
            cwd="/",
        )
        ran = json.loads(done.stdout)["jobs"][0]
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError):
        return {}
    return ran if isinstance(ran, dict) and not ran.get("error") else {}


def _number(side: object, name: str) -> float | None:
    value = side.get(name) if isinstance(side, dict) else None
    return float(value) if isinstance(value, (int, float)) and value > 0 else None
