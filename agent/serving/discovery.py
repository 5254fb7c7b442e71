"""Serving engines that run here, and the port that their command lines say their metrics are on.

Only what an engine's own process names is ever asked. Nobody tries ports: on 8000 or 8080 may listen anything, and a page of
trtllm-serve (/metrics, not the one read here) hands each of its figures out once, to whoever asks first.
"""

from __future__ import annotations

import os

from agent.host import files
from agent.serving.address import DEFAULT_PATH, Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

_MOST_ENGINES = 16
# Process ids are used again: what was learned of them is forgotten after so many scans
_SCANS_UNTIL_FORGOTTEN = 20
_VLLM_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
_TRTLLM_PATH = "/prometheus/metrics"


class EngineScan:
    """Reads a process's command line once in its life."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._known: dict[str, Optional[Address]] = {}
        self._scans = 0

    def addresses(self) -> list[Address]:
        """One for each port. Raises OSError."""
        self._scans += 1
        if self._scans % _SCANS_UNTIL_FORGOTTEN == 0:
            self._known.clear()
        alive = [name for name in os.listdir(self._root + "proc") if name.isdigit()]
        self._known = {pid: self._known[pid] if pid in self._known else self._address(pid) for pid in alive}
        found = {address.port: address for address in self._known.values() if address is not None}
        return [found[port] for port in sorted(found)][:_MOST_ENGINES]

    def _address(self, pid: str) -> Optional[Address]:
        line = files.read_text_or_none(f"{self._root}proc/{pid}/cmdline") or ""
        return address_of([word for word in line.split("\0") if word])


def address_of(words: list[str]) -> Optional[Address]:
    """Where the engine with this command line shows its metrics; None for any other program."""
    program, rest = _program(words)
    if program in _VLLM_MODULES or (program == "vllm" and rest[:1] == ["serve"]):
        return _at(rest, ("--port",), 8000, DEFAULT_PATH)
    if program == "text-generation-router":
        return _at(rest, ("--port", "-p"), 3000, DEFAULT_PATH)
    if program == "trtllm-serve":
        return _at(rest, ("--port",), 8000, _TRTLLM_PATH)
    if program == "tritonserver":
        return _at(rest, ("--metrics-port",), 8002, DEFAULT_PATH)
    return None


def _program(words: list[str]) -> tuple[str, list[str]]:
    """What runs, and its arguments: the program itself, or what Python was told to run."""
    if os.path.basename(words[0] if words else "").startswith("python"):
        words = words[1:]
        if words[:1] == ["-m"]:
            return "".join(words[1:2]), words[2:]
    return os.path.basename(words[0]) if words else "", words[1:]


def _at(words: list[str], options: tuple[str, ...], default: int, path: str) -> Optional[Address]:
    """None where it speaks TLS, whose certificate is for another name than this machine's loopback."""
    if any(word.startswith("--ssl-certfile") for word in words):
        return None
    given = _option(words, options)
    if given is None:
        return Address(default, path)
    return Address(int(given), path) if given.isascii() and given.isdigit() and 0 < int(given) < 65536 else None


def _option(words: list[str], options: tuple[str, ...]) -> Optional[str]:
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in options:
            return value if equals else next(iter(words[place + 1 : place + 2]), "")
    return None
