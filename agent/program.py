"""How this program starts itself again: as a zipapp, unpacked, or out of a checkout."""

from __future__ import annotations

import os
import sys

_CODE = "import sys; sys.path.insert(0, {entry!r}); from agent.__main__ import main; sys.exit(main(sys.argv[1:]))"


def entry() -> str:
    """The zip file or the directory that holds the package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def command(*arguments: str, where: str | None = None) -> list[str]:
    """Isolated from the user's Python settings; without site packages where pynvml comes with the program."""
    place = where or entry()
    bundled = os.path.isfile(place) or os.path.exists(os.path.join(place, "pynvml.py"))
    isolation = ["-I", "-S"] if bundled else ["-I"]
    return [sys.executable, *isolation, "-c", _CODE.format(entry=place), *arguments]


def child_environment() -> dict[str, str]:
    """One malloc arena: threads that hardly allocate need no heap each."""
    return {**os.environ, "MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "65536"}
