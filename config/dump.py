"""The database in one file, and back, by PostgreSQL's own programs."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from psycopg.conninfo import conninfo_to_dict

from config.embedded import EmbeddedError
from config.embedded.binaries import postgres_bin

CHUNK_BYTES = 1 << 20
# Everything of ours lies in this schema; emptying it first makes a restore a replacement and not a mixture.
_BEGIN = b"BEGIN;\nDROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\n"
_COMMIT = b"\nCOMMIT;\n"


class DumpError(RuntimeError):
    """A backup or a restore that did not happen; the text says why. The database is as it was before."""


def back_up(*, database_url: str, target: Path) -> None:
    """Write the whole database to `target` (mode 0600), which appears only when it is complete and readable."""
    draft = target.with_name(f".{target.name}.new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    try:
        _run("pg_dump", ["--format=custom", "--no-owner", "--no-privileges", f"--file={draft}"], database_url)
        check_dump(draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def check_dump(source: Path) -> None:
    """Raise DumpError where `source` is no readable backup."""
    done = subprocess.run([program("pg_restore"), "--list", source], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DumpError(f"{source} is not a backup that this PostgreSQL can read: {done.stderr.strip()}")


def restore(*, database_url: str, source: Path) -> None:
    """Replace everything in the database by what `source` holds, in one transaction: all of it or nothing."""
    check_dump(source)
    with _service(database_url) as environment, tempfile.TemporaryFile() as complaints:
        script = subprocess.Popen(
            [program("pg_restore"), "--no-owner", "--no-privileges", "--file=-", source],
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
        client = subprocess.Popen(
            [program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=environment,
        )
        with script, client:
            assert script.stdout
            assert client.stdin
            with contextlib.suppress(BrokenPipeError):
                _feed(client.stdin, script)
        if script.returncode or client.returncode:
            complaints.seek(0)
            raise DumpError(
                f"The backup was not restored, nothing was changed: {complaints.read(2000).decode().strip()}"
            )


def _feed(stdin: IO[bytes], script: subprocess.Popen[bytes]) -> None:
    assert script.stdout
    with stdin:
        stdin.write(_BEGIN)
        shutil.copyfileobj(script.stdout, stdin, CHUNK_BYTES)
        # Without this word the server undoes it all: a script that ends early must not count as a whole one.
        if script.wait() == 0:
            stdin.write(_COMMIT)


def program(name: str) -> str:
    """The program that ships with the embedded PostgreSQL, or the one in PATH where that has none for this platform."""
    try:
        return str(postgres_bin() / name)
    except EmbeddedError:
        found = shutil.which(name)
        if found is None:
            raise DumpError(
                f"There is no {name} here. Install PostgreSQL's client programs (postgresql-client)."
            ) from None
        return found


def _run(name: str, arguments: list[str], database_url: str) -> None:
    with _service(database_url) as environment:
        done = subprocess.run([program(name), *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DumpError(f"{name} failed: {done.stderr.strip()}")


@contextlib.contextmanager
def _service(database_url: str) -> Iterator[dict[str, str]]:
    """An environment that leads libpq's programs to the database; a password in their arguments would show in the process list."""
    parts = conninfo_to_dict(database_url)
    with tempfile.NamedTemporaryFile("w", prefix="rackrent-", suffix=".service") as file:
        file.write("[rackrent]\n" + "".join(f"{key}={value}\n" for key, value in parts.items()))
        file.flush()
        yield {**os.environ, "PGSERVICEFILE": file.name, "PGSERVICE": "rackrent"}
