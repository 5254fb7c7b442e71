"""What must be true before the processes start: migrations, translations, static files, partitions. Each does nothing when it is."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

Say = Callable[[str], None]


def prepare(say: Say) -> None:
    migrate(say)
    compile_translations()
    if settings.HASHED_STATIC:
        collect_static(say)
    call_command("partitions", stdout=io.StringIO())


def migrate(say: Say) -> None:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        say(f"applying {len(plan)} database migrations")
        call_command("migrate", interactive=False, verbosity=0)


def compile_translations() -> None:
    catalogues = settings.BASE_DIR.glob("locale/*/LC_MESSAGES/django.po")
    if any(_is_older(path.with_suffix(".mo"), path) for path in catalogues):
        call_command("messages", only_compile=True, verbosity=0)


def _is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


def collect_static(say: Say) -> None:
    """Copy, hash and compress static files where they changed since the last time."""
    stamp = settings.STATIC_ROOT / ".collected"
    digest = static_digest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    say("collecting and compressing static files")
    call_command("collectstatic", interactive=False, clear=settings.STATIC_ROOT.exists(), verbosity=0)
    stamp.write_text(digest)


def static_digest() -> str:
    """A mark that changes when a static file is added, changed or removed, or the storage that names them is another."""
    digest = hashlib.sha256(f"{django.__version__} {settings.STORAGES['staticfiles']['BACKEND']}".encode())
    for finder in finders.get_finders():
        for name, storage in finder.list([]):
            stat = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
