"""Prints the observation log as the CSV that `ledger_replay` reads (docs/ledger.md)."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.costs.book.export import observation_csv
from fleet.inventory.models import Instance
from fleet.management.commands.ledger_replay import moment


class Command(BaseCommand):
    help = "Print the observation log as CSV, as ledger_replay reads it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="Only machines of this team (its address).")
        parser.add_argument("--account", type=int, help="Only machines of this account (its id).")
        parser.add_argument("--machine", type=int, action="append", help="Only this machine (its id). May be repeated.")
        parser.add_argument("--since", type=moment, help="From this time on, and what held then. ISO 8601.")
        parser.add_argument("--until", type=moment, help="Before this time. ISO 8601.")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = {
            "team__slug": options["team"],
            "account": options["account"],
            "pk__in": options["machine"],
        }
        machines = Instance.objects.filter(**{name: value for name, value in chosen.items() if value})
        if not machines.exists():
            raise CommandError("There is no such machine.")
        for line in observation_csv(machines, since=options["since"], until=options["until"]):
            self.stdout.write(line, ending="")
