"""manage.py providers: every adapter with what it can do, and what a stop and an end mean there."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from fleet.providers.declared import declaration
from fleet.providers.registry import adapters


class Command(BaseCommand):
    help = "List the providers that accounts can be added for: fields, capabilities, and what stopping costs and loses."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="as one JSON document, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = [declaration(adapter) for adapter in adapters().values()]
        if options["json"]:
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for row in rows:
            self.stdout.write("\n".join(lines_of(row)))


def lines_of(row: dict[str, Any]) -> list[str]:
    fields = ", ".join(
        field["name"] + ("" if field["required"] else " (optional)") + (" (secret)" if field["secret"] else "")
        for field in row["fields"]
    )
    return [
        f"{row['label']} ({row['kind']})",
        f"  asks for   {fields or 'nothing'}",
        f"  can        {', '.join(row['capabilities']) or 'nothing: people type what there is'}",
        *(f"  {event:<10} {meaning}" for event, meaning in meanings(row["semantics"])),
    ]


def meanings(semantics: dict[str, Any]) -> list[tuple[str, str]]:
    stop = told("goes on billing", semantics["billed_when_stopped"]), told("loses", semantics["lost_on_stop"])
    end = told("goes on billing", semantics["billed_after_terminate"]), told("loses", semantics["lost_on_terminate"])
    billed = (
        f"by {semantics['quantum_seconds']} s, at least {semantics['minimum_seconds']} s, in {semantics['currency']}"
    )
    known = "a bill has confirmed it" if semantics["confirmed"] else "no bill has confirmed it"
    return [
        ("stop", "; ".join(stop) if semantics["can_stop"] else "impossible"),
        ("terminate", "; ".join(end)),
        ("billed", f"{billed}; {known}"),
        *([("at zero", semantics["zero_balance"])] if semantics["zero_balance"] else []),
    ]


def told(verb: str, parts: list[str]) -> str:
    return f"{verb} {', '.join(part.replace('_', ' ') for part in parts) or 'nothing'}"
