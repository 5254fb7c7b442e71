"""A zipapp is compiled anew at each start, at the cost of 10 MiB and a second; unpacked once, Python keeps the result."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile

from agent import program

_KEPT_HASH = 16


def replace_process(arguments: list[str], state_directory: str) -> None:
    """Go on as a fresh process with these arguments, out of a directory of ours where the program came as a zip file.

    The directory is named after the hash of the file, so that another version never meets this one's leftovers.
    """
    place = program.entry()
    if os.path.isfile(place):
        try:
            place = unpack(place, os.path.join(state_directory, "code"))
        except (OSError, zipfile.BadZipFile) as error:
            sys.stderr.write(f"running out of the zip file, which takes more memory: {error}\n")
    command = program.command(*arguments, where=place)
    os.execve(command[0], command, program.child_environment())  # noqa: S606  # no shell; the words are our own


def unpack(archive: str, directory: str) -> str:
    """The directory that holds this archive's modules, made if need be. Raises OSError, BadZipFile."""
    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:_KEPT_HASH]
    place = os.path.join(directory, digest)
    if not os.path.isdir(place):
        os.makedirs(directory, mode=0o700, exist_ok=True)
        partial = f"{place}.{os.getpid()}.partial"
        with zipfile.ZipFile(archive) as contents:
            contents.extractall(partial)
        _compile(partial)
        try:
            os.rename(partial, place)
        except OSError:
            # Another process of ours was first; its copy is the same
            shutil.rmtree(partial)
    _remove_others(directory, digest)
    return place


def _compile(place: str) -> None:
    """In a process of its own: what the compiler allocates would stay with this one."""
    import subprocess

    words = [
        "-I",
        "-S",
        "-c",
        "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2, optimize=-1)",
        place,
    ]
    subprocess.run([sys.executable, *words], check=False, timeout=120)


def _remove_others(directory: str, digest: str) -> None:
    for name in os.listdir(directory):
        if name != digest:
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
