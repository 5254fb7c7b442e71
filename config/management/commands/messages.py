"""Collects every translatable text into the catalogues and compiles them. In Python alone: no gettext tools are needed."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import templatize

PACKAGES = ("config", "fleet", "planner", "jobs")
KEYWORDS = {
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "_": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}


class Command(BaseCommand):
    help = "Update locale/*/LC_MESSAGES/django.po from the sources and compile; --check only reports what is missing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="Change nothing; fail on an untranslated text.")
        parser.add_argument("--compile", dest="only_compile", action="store_true", help="Only compile.")

    def handle(self, *args: Any, check: bool, only_compile: bool, **options: Any) -> None:
        for path in sorted(settings.BASE_DIR.glob("locale/*/LC_MESSAGES/django.po")):
            catalog = read_catalog(path)
            if not only_compile:
                catalog.update(collect(), no_fuzzy_matching=True)
            if check and (missing := untranslated(catalog)):
                raise CommandError("Not translated in {}:\n{}".format(path.parent.parent.name, "\n".join(missing)))
            if not only_compile and not check:
                write_catalog(path, catalog)
            compile_catalog(path, catalog)


def read_catalog(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def write_catalog(path: Path, catalog: Catalog) -> None:
    """Sorted and without line numbers, so that two branches seldom touch the same lines."""
    with path.open("wb") as file:
        write_po(file, catalog, sort_output=True, no_location=True, ignore_obsolete=True, omit_header=False, width=120)


def compile_catalog(path: Path, catalog: Catalog) -> None:
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalog)


def collect() -> Catalog:
    catalog = Catalog(charset="utf-8")
    for path in sources():
        for _line, message, comments, context in extract("python", readable(path), KEYWORDS):
            catalog.add(message, context=context, auto_comments=comments)
    return catalog


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((settings.BASE_DIR / package).rglob("*.py"))
    for suffix in ("html", "txt"):
        yield from sorted((settings.BASE_DIR / "templates").rglob(f"*.{suffix}"))


def readable(path: Path) -> BytesIO:
    """Templates are turned into text that an extractor of Python understands; Django does the same for xgettext."""
    text = path.read_text()
    return BytesIO((text if path.suffix == ".py" else templatize(text)).encode())


def untranslated(catalog: Catalog) -> list[str]:
    return [str(message.id) for message in catalog if message.id and not _complete(message.string)]


def _complete(string: str | Sequence[str] | None) -> bool:
    return bool(string) if string is None or isinstance(string, str) else all(string)
