"""The one stream that all children's log lines go to."""

from __future__ import annotations

import os
import sys
import threading
from typing import IO, TextIO

NAME_WIDTH = 8
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92)
# What a rented machine sends may end up in a log line: no control character of it reaches the terminal.
_CONTROLS = {code: "�" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\t"}


class Console:
    """Writes whole lines, each behind the name of who said it; coloured on a terminal unless NO_COLOR is set."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.coloured = self.stream.isatty() and "NO_COLOR" not in os.environ
        self._lock = threading.Lock()
        self._names: list[str] = []

    def say(self, name: str, text: str) -> None:
        for line in text.splitlines():
            self._write(f"{self._prefix(name)} {line.translate(_CONTROLS)}\n")

    def follow(self, name: str, output: IO[bytes]) -> threading.Thread:
        """Copy a child's output line by line until it closes, in a thread of its own."""
        thread = threading.Thread(target=self._copy, args=(name, output), name=f"log of {name}", daemon=True)
        thread.start()
        return thread

    def _copy(self, name: str, output: IO[bytes]) -> None:
        with output:
            for line in output:
                self.say(name, line.decode(errors="replace"))

    def _prefix(self, name: str) -> str:
        label = f"{name:<{NAME_WIDTH}} |"
        if not self.coloured:
            return label
        if name not in self._names:
            self._names.append(name)
        colour = _COLOURS[self._names.index(name) % len(_COLOURS)]
        return f"\x1b[{colour}m{label}\x1b[0m"

    def _write(self, line: str) -> None:
        with self._lock:
            self.stream.write(line)
            self.stream.flush()
