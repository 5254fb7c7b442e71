"""Writes a month of a team's money to a file (docs/exports.md)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from fleet.costs.exports.export import FORMATS, Export, ExportError, Wish, open_export
from fleet.costs.exports.focus_columns import DEFAULT_VERSION, VERSIONS
from fleet.teams.models import Team


class Command(BaseCommand):
    help = "Write what a team spent in a month as a file: FOCUS, plain CSV, or Parquet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", required=True, help="Its address, as in /t/<team>/.")
        parser.add_argument("--month", default="", help="YYYY-MM, in the team's time zone. Default: the present one.")
        parser.add_argument("--format", choices=list(FORMATS), default="csv")
        parser.add_argument("--focus-version", choices=VERSIONS, default=DEFAULT_VERSION)
        parser.add_argument("--bom", action="store_true", help="A byte order mark before a CSV file, for Excel.")
        parser.add_argument("--output", type=Path, help="Where to. Default: the standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        team = Team.objects.filter(slug=options["team"]).first()
        if team is None:
            raise CommandError(f"There is no team with the address {options['team']!r}.")
        asked = {"month": options["month"], "format": options["format"], "version": options["focus_version"]}
        try:
            wish = Wish.of({**asked, "bom": "1" if options["bom"] else ""}, team=team, now=timezone.now())
        except ExportError as error:
            raise CommandError(f"--{error.field}: {error}") from None
        export = open_export(team, wish)
        if options["output"] is None:
            write(export, sys.stdout.buffer)
            return
        self.stdout.write(f"{write_file(export, options['output'])} bytes in {options['output']}.")


def write(export: Export, file: BinaryIO) -> int:
    return sum(file.write(piece) for piece in export.pieces)


def write_file(export: Export, path: Path) -> int:
    """A file that is there is whole: what breaks off leaves the one before it."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            written = write(export, file)
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return written
