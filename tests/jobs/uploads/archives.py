"""Archives as people send them, and as nobody should."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any


def tar_of(files: Mapping[str, bytes | tarfile.TarInfo], *, mode: Any = "w:gz") -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:
        for name, data in files.items():
            if isinstance(data, tarfile.TarInfo):
                tar.addfile(data)
                continue
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    made.seek(0)
    return made


def zip_of(files: Mapping[str, bytes], *, mode: int = stat.S_IFREG | 0o644) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    made.seek(0)
    return made


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry
