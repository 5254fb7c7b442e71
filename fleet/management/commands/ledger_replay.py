"""Makes the ledger from a file of observations, and prints its intervals and what each machine cost (docs/ledger.md)."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.costs.ledger.charges import Line, Rules, charges_of, lines_of
from fleet.costs.ledger.intervals import Interval, Ledger
from fleet.costs.ledger.sightings import COLUMNS, Sighting, SightingError, read_sightings
from fleet.providers.registry import adapters


class Command(BaseCommand):
    help = f"Make the ledger from observations (CSV: {','.join(COLUMNS)}) and print intervals and totals per machine, meter and month."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--provider",
            choices=sorted(adapters()),
            help="Whose quantum and minimum are charged. Default: by the second, without a minimum.",
        )
        parser.add_argument(
            "--until", type=moment, help="Count what is open up to this time, ISO 8601. Default: the last observation."
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        sightings = read(options["file"])
        provider = options["provider"]
        rules = Rules.of(adapters()[provider].semantics) if provider else Rules()
        ledger = Ledger()
        ledger.see(sightings)
        intervals = ledger.intervals()
        until = options["until"] or sightings[-1].seen_at
        lines = lines_of(charges_of(intervals, rules=rules, until=until))
        if options["json"]:
            self.stdout.write(json.dumps(as_json(intervals, lines, until), indent=2))
            return
        for one in intervals:
            self.stdout.write(interval_words(one))
        for line in lines:
            self.stdout.write(line_words(line))


def read(path: Path) -> list[Sighting]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            sightings = read_sightings(file)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8 text.") from None
    except SightingError as error:
        raise CommandError(f"{path}, {error}.") from None
    if not sightings:
        raise CommandError(f"{path} has no observation.")
    return sightings


def moment(word: str) -> datetime:
    try:
        value = datetime.fromisoformat(word)
    except ValueError:
        raise ArgumentTypeError("give a time as 2026-11-30T08:00:00Z") from None
    return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


def as_json(intervals: list[Interval], lines: list[Line], until: datetime) -> dict[str, Any]:
    totals: dict[str, Decimal] = {}
    for line in lines:
        totals[line.currency] = totals.get(line.currency, Decimal(0)) + line.amount
    return {
        "until": iso(until),
        "intervals": [interval_json(one) for one in intervals],
        "lines": [line_json(line) for line in lines],
        "totals": {currency: text(amount) for currency, amount in sorted(totals.items())},
    }


def interval_json(one: Interval) -> dict[str, Any]:
    return {
        "machine": one.machine,
        "meter": one.meter.value,
        "market": one.market,
        "start": iso(one.start),
        "end": iso(one.end) if one.end else None,
        "start_half_width_seconds": one.start_width.total_seconds(),
        "end_half_width_seconds": one.end_width.total_seconds(),
        "start_source": one.start_source.value,
        "unit": one.price.unit.value,
        "unit_price": None if one.price.unit_price is None else text(one.price.unit_price),
        "quantity": text(one.price.quantity),
        "currency": one.price.currency,
        "run": one.run,
    }


def line_json(line: Line) -> dict[str, Any]:
    return {
        "machine": line.machine,
        "meter": line.meter.value,
        "month": f"{line.month:%Y-%m}",
        "currency": line.currency,
        "seconds": line.seconds,
        "amount": text(line.amount),
        "rounded": text(line.rounded),
        "unpriced_seconds": line.unpriced_seconds,
    }


def iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def text(amount: Decimal) -> str:
    """Without an exponent: programs that read money as text must not have to know one."""
    return f"{amount:f}"


def interval_words(one: Interval) -> str:
    end = iso(one.end) if one.end else "so far"
    price = "" if one.price.unit_price is None else f"{one.price.unit_price:f} {one.price.currency}/{one.price.unit}"
    width = f" ± {one.end_width.total_seconds():g} s" if one.end_width else ""
    return f"{one.machine}  {one.meter}  {iso(one.start)} – {end}{width}  {price}".rstrip()


def line_words(line: Line) -> str:
    lacks = f"  ({line.unpriced_seconds} s without a price)" if line.unpriced_seconds else ""
    return f"{line.machine}  {line.meter}  {line.month:%Y-%m}  {line.rounded} {line.currency}{lacks}"
