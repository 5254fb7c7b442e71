"""What is no upload, and how much is too much."""

from __future__ import annotations

from pathlib import PurePosixPath

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

MIB = 1024 * 1024
MOST_FILES = 20_000
MOST_UNPACKED_BYTES = 1024 * MIB
# A few longer ones still fit into what a file system takes.
LONGEST_PATH = 400
# At the top of where the command runs.
OURS = frozenset({"hosts", "repository"})


class UploadRefused(ValueError):
    """Why a file is not taken; `field` is that of a form."""

    field = "upload"

    def __init__(self, text: str | Promise) -> None:
        super().__init__(text)
        self.text = text


class Tally:
    """Counts what comes out of an archive, whatever the archive says of itself."""

    def __init__(self) -> None:
        self.files = self.bytes = 0
        self._files: set[PurePosixPath] = set()
        self._folders: set[PurePosixPath] = set()

    def path_of(self, name: str, *, is_folder: bool) -> PurePosixPath | None:
        """Within the folder in which it is unpacked; None: that folder itself. Raises UploadRefused."""
        said = {"name": printable(name)}
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or not name.isprintable():
            raise UploadRefused(
                _("“%(name)s” leads out of the folder, or has characters that no name should have.") % said
            )
        if len(name.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
            raise UploadRefused(_("“%(name)s” is too long for a path.") % said)
        if not path.parts:
            return None
        if path.parts[0] in OURS:
            raise UploadRefused(_("“%(name)s” is a name that Rackrent itself uses there: choose another.") % said)
        self._place(path, is_folder=is_folder)
        return path

    def _place(self, path: PurePosixPath, *, is_folder: bool) -> None:
        folders = {*path.parents, path} if is_folder else set(path.parents)
        if path in self._files or (path in self._folders and not is_folder) or folders & self._files:
            raise UploadRefused(_("“%(name)s” is in it twice.") % {"name": printable(str(path))})
        self._folders |= folders
        if not is_folder:
            self._files.add(path)
        self.files += 1
        if self.files > MOST_FILES:
            raise UploadRefused(_("At most %(n)d files and folders in one archive.") % {"n": MOST_FILES})

    def refuse_nothing(self, name: str) -> None:
        if not self.files:
            raise UploadRefused(_("There is no file in “%(name)s”.") % {"name": printable(name)})

    def add(self, count: int) -> None:
        self.bytes += count
        if self.bytes > MOST_UNPACKED_BYTES:
            raise UploadRefused(
                _("Unpacked it is more than %(n)d MiB. Put data on the machines another way.")
                % {"n": MOST_UNPACKED_BYTES // MIB}
            )


def printable(name: str) -> str:
    return "".join(mark if mark.isprintable() else "?" for mark in name)[:100]
