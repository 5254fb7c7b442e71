"""Reads what somebody sent and packs it anew, so that what a machine unpacks was made by us: plain files and folders with plain names.

An archive is hostile: its sizes may lie, its names may lead anywhere, its headers may be larger than all of it. It is read as a stream, each piece within
bounds, and nothing of it is ever written under its own name here.
"""

from __future__ import annotations

import gzip
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from django.utils.translation import gettext_lazy as _

from jobs.uploads.refusing import MIB, MOST_FILES, Tally, UploadRefused, printable

PIECE = 256 * 1024
# Of a tar, for one entry's headers: long names and the like.
HEADER_BYTES = 256 * 1024
# Below it, packed files stay in memory.
IN_MEMORY_BYTES = 4 * MIB
TARS = (".tar", ".tar.gz", ".tgz")
# Of a list of contents, by which Python would be kept busy before any of it is looked at.
ZIP_ENTRY, MOST_ZIP_ENTRIES = b"PK\x01\x02", 5 * MOST_FILES
# What the libraries say to what is none.
UNREADABLE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """`data` None: a folder. It is read before the next entry is asked for."""

    path: PurePosixPath
    data: IO[bytes] | None = None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Packed:
    """`file`: a gzipped tar, at its begin."""

    file: IO[bytes]
    packed_bytes: int
    unpacked_bytes: int
    file_count: int


def repack(file: IO[bytes], name: str, *, mtime: int) -> Packed:
    """An archive by the end of its name, else a file as it is. Raises UploadRefused."""
    tally = Tally()
    packed = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - whoever gets it closes it
    try:
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6, format=tarfile.PAX_FORMAT) as tar:
            for entry in entries_of(file, name, tally):
                _write(tar, entry, tally, mtime)
        tally.refuse_nothing(name)
        size = packed.tell()
        packed.seek(0)
    except BaseException as error:
        packed.close()
        if isinstance(error, UNREADABLE) and not isinstance(error, UploadRefused):
            text = _("“%(name)s” cannot be read as an archive.")
            raise UploadRefused(text % {"name": printable(name)}) from None
        raise
    return Packed(packed, size, tally.bytes, tally.files)


def entries_of(file: IO[bytes], name: str, tally: Tally) -> Iterator[Entry]:
    lower = name.lower()
    is_tar, is_zip = lower.endswith(TARS), lower.endswith(".zip")
    if not is_tar and not is_zip:
        path = tally.path_of(PurePosixPath(name).name, is_folder=False)
        if path is None:
            raise UploadRefused(_("The file has no name."))
        yield Entry(path, file)
        return
    yield from _of_zip(file, tally) if is_zip else _of_tar(file, tally)


def _write(tar: tarfile.TarFile, entry: Entry, tally: Tally, mtime: int) -> None:
    """Into a file first: the size has to be known, and what an archive says of it may be a lie."""
    made = tarfile.TarInfo(str(entry.path))
    made.mtime = mtime
    if entry.data is None:
        made.type, made.mode = tarfile.DIRTYPE, 0o700
        tar.addfile(made)
        return
    made.mode = 0o700 if entry.executable else 0o600
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as copy:
        while piece := entry.data.read(PIECE):
            tally.add(len(piece))
            copy.write(piece)
        made.size = copy.tell()
        copy.seek(0)
        tar.addfile(made, copy)


class Bounded:
    """A stream that gives no more than it is allowed to: headers of a tar are read as long as they say they are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left = file, 0

    def allow(self, count: int) -> None:
        self._left = count

    def read(self, count: int) -> bytes:
        if count > self._left:
            raise UploadRefused(_("The archive has headers larger than any file needs."))
        self._left -= count
        return self._file.read(count)


def _of_tar(file: IO[bytes], tally: Tally) -> Iterator[Entry]:
    is_gzip = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    bounded = Bounded(gzip.GzipFile(fileobj=file, mode="rb") if is_gzip else file)  # type: ignore[arg-type]  # it reads bytes
    bounded.allow(HEADER_BYTES)
    with tarfile.open(fileobj=cast("Any", bounded), mode="r|", bufsize=tarfile.RECORDSIZE) as tar:
        while (member := tar.next()) is not None:
            # Python keeps every entry that it has seen.
            tar.members.clear()  # type: ignore[attr-defined]  # not in its stubs
            if not member.isdir() and (not member.isreg() or member.issparse()):
                text = _("“%(name)s” is a link or a device. Pack the files themselves.")
                raise UploadRefused(text % {"name": printable(member.name)})
            path = tally.path_of(member.name, is_folder=member.isdir())
            bounded.allow(member.size + HEADER_BYTES)
            if path is not None:
                yield Entry(path, tar.extractfile(member), bool(member.mode & stat.S_IXUSR))
            bounded.allow(member.size + HEADER_BYTES)


def _of_zip(file: IO[bytes], tally: Tally) -> Iterator[Entry]:
    _refuse_many(file)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            said = {"name": printable(info.filename)}
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise UploadRefused(_("“%(name)s” is a link or a device. Pack the files themselves.") % said)
            if info.flag_bits & 1 or info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise UploadRefused(_("“%(name)s” is encrypted, or packed in a way that is not read here.") % said)
            path = tally.path_of(info.filename, is_folder=info.is_dir())
            if path is None or info.is_dir():
                yield from [Entry(path)] if path is not None else []
                continue
            with archive.open(info) as data:
                yield Entry(path, data, bool(mode & stat.S_IXUSR))


def _refuse_many(file: IO[bytes]) -> None:
    """Before a list of contents is read as a whole."""
    count, last = 0, b""
    while piece := file.read(PIECE):
        count += (last + piece).count(ZIP_ENTRY)
        last = piece[-3:]
        if count > MOST_ZIP_ENTRIES:
            raise UploadRefused(_("At most %(n)d files and folders in one archive.") % {"n": MOST_FILES})
    file.seek(0)


def pieces(file: IO[Any], size: int) -> Iterator[bytes]:
    while piece := file.read(size):
        yield piece
