"""How fast data gets into each GPU and how fast it multiplies matrices, by the machine's own torch where there is one."""

from __future__ import annotations

import json
import os
import subprocess
import time

from agent.acceptance.interpreters import find_python
from agent.acceptance.unmeasured import NotMeasuredError

Row = dict[str, object]

# Run as it stands by the interpreter that was found; its only arguments are numbers of ours
SCRIPT = """
import json, sys, time
import torch

def say(row):
    print(json.dumps(row), flush=True)

def timed(step, seconds):
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    count, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(4):
            step()
        torch.cuda.synchronize()
        count += 4
    return count / (time.monotonic() - began)

def test(index, seconds):
    torch.cuda.set_device(index)
    row = {"index": index}
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    if uuid is not None:
        row["uuid"] = str(uuid)
    size = 256 << 20
    host = torch.empty(size, dtype=torch.uint8).pin_memory()
    card = torch.empty(size, dtype=torch.uint8, device="cuda")
    row["host_to_device_bytes_per_second"] = size * timed(lambda: card.copy_(host, non_blocking=True), seconds)
    del host, card
    kind = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=kind) for _ in range(2))
    out = torch.empty(n, n, device="cuda", dtype=kind)
    row["matrix_flops_per_second"] = 2.0 * n ** 3 * timed(lambda: torch.matmul(a, b, out=out), seconds)
    row["matrix_type"] = str(kind).rpartition(".")[2]
    say(row)

say({"torch": torch.__version__, "count": torch.cuda.device_count()})
for index in range(torch.cuda.device_count()):
    try:
        test(index, float(sys.argv[1]))
    except Exception as error:
        say({"index": index, "failed": (type(error).__name__ + ": " + str(error))[:200]})
    torch.cuda.empty_cache()
"""
_EACH_SECONDS = 1.0
_END_SECONDS = 10.0
# A container image says with these where its CUDA lies; nothing else of our environment is handed on
_HANDED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "NVIDIA_VISIBLE_DEVICES")


class TorchRates:
    """Begins at once; ``running`` until it ended or its time is over. Raises NotMeasuredError where no torch can be run."""

    def __init__(self, seconds: float, uuids: list[str]) -> None:
        interpreter = find_python("torch")
        self._uuids = uuids
        self._until = time.monotonic() + seconds
        environment = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
        # The order of NVML, in which the cards are known here
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        self._child = subprocess.Popen(
            [interpreter, "-I", "-c", SCRIPT, str(_EACH_SECONDS)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
        )
        self._rows: list[Row] = []
        self._timed_out = False

    def running(self) -> bool:
        if self._child.poll() is None and time.monotonic() < self._until:
            return True
        if self._child.poll() is None:
            self._timed_out = True
            self._child.kill()
        # A few lines, which a pipe holds until they are read
        output, _ = self._child.communicate(timeout=_END_SECONDS)
        self._rows = _understood(output)
        return False

    def by_uuid(self) -> dict[str, Row]:
        fields = ("host_to_device_bytes_per_second", "matrix_flops_per_second", "matrix_type")
        found = {}
        for row in self._rows:
            uuid = self._uuid_of(row)
            if uuid is not None:
                found[uuid] = {name: row[name] for name in fields if name in row}
        return found

    def described(self) -> Row:
        """The version, and what went wrong on which card."""
        first = next((row for row in self._rows if "torch" in row), None)
        if first is None:
            why = "torch did not come up in the time there was" if self._timed_out else "torch cannot be imported"
            raise NotMeasuredError(why)
        if not first.get("count"):
            raise NotMeasuredError(f"torch {first['torch']} sees no GPU")
        failed = {
            str(row["index"]): str(row["failed"])[:200] for row in self._rows if "failed" in row and "index" in row
        }
        return {
            "version": first["torch"],
            "count": first["count"],
            "timed_out": self._timed_out,
            **({"failed": failed} if failed else {}),
        }

    def _uuid_of(self, row: Row) -> str | None:
        said, index = row.get("uuid"), row.get("index")
        if isinstance(said, str):
            return next((uuid for uuid in self._uuids if uuid.removeprefix("GPU-") == said.removeprefix("GPU-")), None)
        return self._uuids[index] if isinstance(index, int) and index < len(self._uuids) else None


def _understood(output: bytes) -> list[Row]:
    rows = []
    for line in output.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows
