"""Attribution as pages put it: whose, from when, and what moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from fleet.costs.attribution.desired import Attribution
from fleet.costs.attribution.models import AttributionSource, AttributionSpan, Reattribution, SplitMode
from fleet.costs.attribution.money import Amounts, Whose
from fleet.costs.attribution.standing import Names, Preview
from fleet.formats import amounts_text
from fleet.inventory.models import Instance
from fleet.teams.models import Team

LINES_SHOWN = 50
SPANS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Line:
    """A machine that changes hands."""

    pk: int
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class MovedMoney:
    """What one project and owner had of some days, and what they have of them since. `after` None: not summed yet."""

    whose: str
    before: str
    after: str | None


@dataclass(frozen=True, slots=True)
class EntryShown:
    entry: Reattribution
    machines: int
    target: str
    money: list[MovedMoney]


@dataclass(frozen=True, slots=True)
class SpanShown:
    start: datetime
    end: datetime | None
    whose: str
    details: list[str]


def preview_lines(team: Team, preview: Preview) -> dict[str, Any]:
    sides = [side for moved in preview.moved for side in (moved.before, moved.after)]
    names = Names.of(team, [(side.project_id, side.owner_id) for side in sides])
    shown = preview.moved[:LINES_SHOWN]
    return {
        "hour": preview.hour,
        "matched": preview.matched,
        "moved": len(preview.moved),
        "lines": [
            Line(one.machine.pk, one.machine.name, side_text(names, one.before), side_text(names, one.after))
            for one in shown
        ],
        "more": len(preview.moved) - len(shown),
    }


def side_text(names: Names, one: Attribution) -> str:
    """Whose, with what else decides where money goes."""
    labels = ", ".join(f"{key}={value}" for key, value in sorted(one.labels.items()))
    split = "" if one.split == SplitMode.WHOLE else str(SplitMode(one.split).label)
    return "; ".join(part for part in (names.text(one.project_id, one.owner_id), split, labels) if part)


def reattributions_shown(team: Team, entries: QuerySet[Reattribution]) -> list[EntryShown]:
    rows = list(entries.select_related("project", "owner", "rule").annotate(machines=Count("instances")))
    names = Names.of(team, [whose_of(line) for row in rows for line in (*row.before, *(row.after or ()))])
    return [
        EntryShown(
            row, row.machines, names.text(row.project_id, row.owner_id), moved_money(names, row.before, row.after)
        )
        for row in rows
    ]


def moved_money(
    names: Names, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]] | None
) -> list[MovedMoney]:
    """Whoever has as much as before is left out."""
    old, new = by_whose(before), by_whose(after or ())
    return [
        MovedMoney(
            names.text(*whose),
            amounts_text(old.get(whose, {})),
            None if after is None else amounts_text(new.get(whose, {})),
        )
        for whose in dict.fromkeys([*old, *new])
        if after is None or old.get(whose) != new.get(whose)
    ]


def by_whose(lines: Iterable[Mapping[str, Any]]) -> dict[Whose, Amounts]:
    return {
        whose_of(line): {currency: Decimal(amount) for currency, amount in line["amounts"].items()} for line in lines
    }


def whose_of(line: Mapping[str, Any]) -> Whose:
    return line["project"], line["owner"]


def spans_shown(instance: Instance) -> list[SpanShown]:
    """The newest first."""
    rows = AttributionSpan.objects.filter(instance=instance).select_related("project", "owner", "rule")
    return [span_shown(row) for row in rows.order_by("-period")[:SPANS_SHOWN]]


def span_shown(row: AttributionSpan) -> SpanShown:
    parts = (row.project.name if row.project else "", row.owner.display_name if row.owner else "")
    split = "" if row.split == SplitMode.WHOLE else row.get_split_display()
    job = _("job %(name)s") % {"name": row.job} if row.job else ""
    return SpanShown(
        row.period.lower,
        row.period.upper,
        " · ".join(part for part in parts if part) or _("nobody"),
        [part for part in (why_text(row), split, job, row.note) if part],
    )


def why_text(row: AttributionSpan) -> str:
    """What decided; "" where nothing did."""
    if row.source == AttributionSource.MACHINE:
        return ""
    if row.rule is None:
        return str(row.get_source_display())
    if row.source == AttributionSource.RULE:
        return _("by rule %(order)d") % {"order": row.rule.order}
    if row.source == AttributionSource.MANUAL:
        return _("set on the machine, what was left open by rule %(order)d") % {"order": row.rule.order}
    return _("attributed again, as rule %(order)d says") % {"order": row.rule.order}
