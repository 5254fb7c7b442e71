"""How fast the machine's largest writable disk is: one file of bounded size, which has no name and is gone with this process."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import tempfile
import threading
import time

from agent.acceptance.fio import run_fio
from agent.acceptance.unmeasured import NotMeasuredError
from agent.host import filesystems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Row = dict[str, object]

MIB = 1 << 20
MOST_FILE_BYTES = 1 << 30
LEAST_FILE_BYTES = 64 * MIB
# Never more than a twentieth of what is free, and nothing at all on a disk that is nearly full
_SHARE_OF_FREE = 0.05
_LEAST_FREE_SHARE = 0.1
_BLOCK, _SMALL = MIB, 4096
_THREADS = 16


def test_disk(state_directory: str, *, seconds: float) -> Row:
    """Rates of reading and writing, in order (1 MiB) and anywhere (4 KiB). Raises NotMeasuredError."""
    directory, size, available = choose_place(state_directory)
    file_bytes = file_size(size, available)
    found: Row = {"place": directory, "size_bytes": size, "file_bytes": file_bytes}
    with unnamed_file(directory) as descriptor:
        os.posix_fallocate(descriptor, 0, file_bytes)
        fio = shutil.which("fio", path="/usr/bin:/bin:/usr/local/bin")
        if fio is not None:
            rates = run_fio(fio, descriptor, file_bytes=file_bytes, seconds=seconds / 4)
            if rates:
                return {**found, "by": "fio", **rates}
        return {**found, "by": "own", **OwnTest(descriptor, file_bytes, seconds / 4).rates()}


def choose_place(state_directory: str) -> tuple[str, int, int]:
    """(directory, size, bytes free for us) of the largest local file system that we may write to. Raises NotMeasuredError."""
    mounts = filesystems.sizes("/", filesystems.LOCAL)
    places = [(mount, size, free) for mount, (size, _, free) in mounts.items() if _is_writable(mount)]
    if not places and _is_writable(state_directory):
        figures = os.statvfs(state_directory)
        unit = figures.f_frsize
        places = [(state_directory, figures.f_blocks * unit, figures.f_bavail * unit)]
    if not places:
        raise NotMeasuredError("there is no file system that the agent may write to")
    return max(places, key=lambda place: place[1])


def _is_writable(directory: str) -> bool:
    return os.path.isdir(directory) and os.access(directory, os.W_OK | os.X_OK)


def file_size(size: int, available: int) -> int:
    """Raises NotMeasuredError."""
    if available < size * _LEAST_FREE_SHARE:
        raise NotMeasuredError(f"the disk is nearly full ({available / 2**30:.1f} GiB free): nothing is written to it")
    wanted = min(MOST_FILE_BYTES, int(available * _SHARE_OF_FREE)) // MIB * MIB
    if wanted < LEAST_FILE_BYTES:
        raise NotMeasuredError(f"only {available / 2**20:.0f} MiB are free: too few to measure with")
    return wanted


@contextlib.contextmanager
def unnamed_file(directory: str) -> Iterator[int]:
    """An open file without a name: however this ends, nothing stays behind."""
    descriptor, path = tempfile.mkstemp(prefix=".rackrent-accept-", dir=directory)
    os.unlink(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class OwnTest:
    """Without fio. Past the page cache where the file system allows it; elsewhere reading is not told, for it would be memory's rate."""

    def __init__(self, descriptor: int, file_bytes: int, seconds: float) -> None:
        # Of the file, what was written so far: reading the rest would cost the disk nothing
        self._bytes = file_bytes
        self._seconds = seconds
        self._sync = descriptor
        try:
            self._file = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_DIRECT)
            self.direct = self._works()
        except OSError:
            self.direct = False

    def rates(self) -> Row:
        if not self.direct:
            self._file = self._sync
        try:
            return self._rates()
        finally:
            if self.direct:
                os.close(self._file)

    def _rates(self) -> Row:
        found: Row = {"direct": self.direct, "write_bytes_per_second": self._in_order(self._write, written=True)}
        found["write_iops"] = self._anywhere(self._write)
        if self.direct:
            found["read_bytes_per_second"] = self._in_order(self._read, written=False)
            found["read_iops"] = self._anywhere(self._read)
        return found

    def _works(self) -> bool:
        """Some file systems open such a file and then refuse it."""
        with _buffer(_SMALL) as page:
            return os.pwritev(self._file, [page], 0) == _SMALL

    def _write(self, buffer: mmap.mmap, place: int) -> int:
        return os.pwritev(self._file, [buffer], place)

    def _read(self, buffer: mmap.mmap, place: int) -> int:
        return os.preadv(self._file, [buffer], place)

    def _in_order(self, move: Callable[[mmap.mmap, int], int], *, written: bool) -> float:
        moved, began = 0, time.monotonic()
        with _buffer(_BLOCK) as block:
            while time.monotonic() - began < self._seconds:
                moved += move(block, moved % self._bytes)
                if moved % self._bytes == 0 and not self.direct:
                    os.fdatasync(self._sync)
        os.fdatasync(self._sync)
        if written:
            self._bytes = min(self._bytes, moved)
        return round(moved / (time.monotonic() - began))

    def _anywhere(self, move: Callable[[mmap.mmap, int], int]) -> float:
        done = [0] * _THREADS
        began = time.monotonic()
        pages = self._bytes // _SMALL

        def work(place: int) -> None:
            chosen = random.Random(place)  # noqa: S311  # places in a file, no secret
            with _buffer(_SMALL) as page:
                while time.monotonic() - began < self._seconds:
                    move(page, chosen.randrange(pages) * _SMALL)
                    if not self.direct:
                        os.fdatasync(self._sync)
                    done[place] += 1

        workers = [threading.Thread(target=work, args=(place,)) for place in range(_THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return round(sum(done) / (time.monotonic() - began))


@contextlib.contextmanager
def _buffer(size: int) -> Iterator[mmap.mmap]:
    """On a page's border, as direct access wants it, and of bytes that nothing compresses."""
    with mmap.mmap(-1, size) as buffer:
        buffer.write(os.urandom(size))
        yield buffer
