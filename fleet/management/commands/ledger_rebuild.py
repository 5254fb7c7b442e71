"""Makes the ledger anew from the observation log, and prints what of it was stored otherwise (docs/ledger.md)."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.costs.book.build import rebuild_ledger
from fleet.costs.book.entries import Entry
from fleet.costs.book.write import Difference
from fleet.inventory.models import Instance
from fleet.management.commands.ledger_replay import iso


class Command(BaseCommand):
    help = "Make the ledger anew from the observation log, print what was stored otherwise, and replace it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="Only machines of this team (its address).")
        parser.add_argument("--machine", type=int, action="append", help="Only this machine (its id). May be repeated.")
        parser.add_argument(
            "--check", action="store_true", help="Replace nothing; exit with 1 if anything is stored otherwise."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        machines = Instance.objects.order_by("pk")
        if options["team"]:
            machines = machines.filter(team__slug=options["team"])
        if options["machine"]:
            machines = machines.filter(pk__in=options["machine"])
        ids = list(machines.values_list("pk", flat=True))
        if not ids:
            raise CommandError("There is no such machine.")
        count = 0
        for one in rebuild_ledger(instances=ids, check=options["check"]):
            count += 1
            self.stdout.write(difference_words(one))
        self.stdout.write(f"{len(ids)} machines, {count} differences.")
        if count and options["check"]:
            raise CommandError("The ledger is not what the observation log gives.", returncode=1)


def difference_words(one: Difference) -> str:
    stored, made = one.stored.entry if one.stored else None, one.made
    if stored is None:
        return f"machine {one.instance_id} lacks {words(made)}"
    if made is None:
        return f"machine {one.instance_id} has {words(stored)}, which nothing shows"
    return f"machine {one.instance_id} has {words(stored)} instead of {words(made)}"


def words(entry: Entry | None) -> str:
    assert entry is not None
    price = "at a price not told" if entry.unit_price is None else f"{entry.unit_price:f} {entry.currency}/{entry.unit}"
    meter = f"{entry.kind} {entry.resource}".strip()
    return f"{meter} {iso(entry.start)} – {iso(entry.end) if entry.end else 'now'} {price}"
