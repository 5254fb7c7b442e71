"""Builds the agent as one file: ``python -m agent.build TARGET`` prints its SHA-256.

The same sources give the same bytes, whoever builds them and whenever: names are sorted, times fixed, nothing compiled.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path

import pynvml

_SHEBANG = b"#!/usr/bin/env python3\n"
_ROOT_MAIN = "import sys\n\nfrom agent.__main__ import main\n\nsys.exit(main(sys.argv[1:]))\n"
# The oldest time a zip file can hold
_TIME = (1980, 1, 1, 0, 0, 0)
_NOT_SHIPPED = frozenset({"build.py"})


def build_zipapp(target: Path) -> str:
    """Write the agent to ``target``, in one step, and return the SHA-256 of its bytes. Raises OSError."""
    data = _SHEBANG + _zipped(_sources())
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.chmod(0o755)
    temporary.replace(target)
    return hashlib.sha256(data).hexdigest()


def _sources() -> dict[str, bytes]:
    package = Path(__file__).parent
    sources = {
        f"agent/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*.py")
        if path.name not in _NOT_SHIPPED
    }
    return {**sources, "__main__.py": _ROOT_MAIN.encode(), "pynvml.py": Path(pynvml.__file__).read_bytes()}


def _zipped(sources: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(sources):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            # Not deflated: the bytes would depend on the zlib of whoever builds. The download is compressed by the server
            archive.writestr(entry, sources[name], zipfile.ZIP_STORED)
    return buffer.getvalue()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m agent.build TARGET")
    sys.stdout.write(build_zipapp(Path(sys.argv[1])) + "\n")
