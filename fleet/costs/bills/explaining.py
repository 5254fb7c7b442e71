"""Why lines differ, in words for people: the kind of reason, with what it is known by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from fleet.costs.bills.matching import MeterClass, ReasonKind, Status
from fleet.costs.bills.shown import Explanation, Group, Reconciliation
from fleet.costs.bills.words import CLASSES, REASONS, STATUSES
from fleet.formats import money_text

# In the mark of app.css.
MARKS = {
    Status.MATCHED: "matched",
    Status.MISSING_HERE: "here",
    Status.MISSING_THERE: "there",
    Status.DIFFERS: "differs",
}


@dataclass(frozen=True, slots=True)
class Told:
    group: Group
    mark: str
    status: str
    name: str
    meter: str
    why: tuple[str, ...]
    # None: nothing on that side.
    counted: str | None
    billed: str | None
    difference: str
    accepted: str
    left: str


@dataclass(frozen=True, slots=True)
class ToldPart:
    mark: str
    status: str
    amount: str
    lines: int
    note: str


def told_groups(groups: Iterable[Group], currency: str) -> list[Told]:
    return [told_group(group, currency) for group in groups]


def told_group(group: Group, currency: str) -> Told:
    return Told(
        group=group,
        mark=MARKS[group.status],
        status=str(STATUSES[group.status]),
        name=group.instance.name if group.instance else group.name or _("the account"),
        meter=str(CLASSES[MeterClass(group.meter)]),
        why=tuple(sentence(one) for one in group.explanations),
        counted=None if group.status is Status.MISSING_HERE else money_text(group.counted, currency),
        billed=None if group.status is Status.MISSING_THERE else money_text(group.billed, currency),
        difference=signed(group.difference, currency),
        accepted=signed(group.accepted, currency) if group.accepted else "",
        left=signed(group.left, currency) if group.left else "",
    )


def told_parts(found: Reconciliation) -> list[ToldPart]:
    notes = {
        Status.MATCHED: _("same within a cent or 1%"),
        Status.MISSING_HERE: _("on the bill, not counted here"),
        Status.MISSING_THERE: _("counted here, not on the bill"),
        Status.DIFFERS: _("on both, not the same"),
    }
    return [
        ToldPart(
            MARKS[part.status],
            str(STATUSES[part.status]),
            money_text(part.amount, found.currency)
            if part.status is Status.MATCHED
            else signed(part.amount, found.currency),
            part.lines,
            notes[part.status],
        )
        for part in found.parts
    ]


def heading(found: Reconciliation) -> str:
    """The finding in one sentence."""
    values = {
        "name": found.account.name,
        "month": date_format(found.month, "F"),
        "difference": money_text(abs(found.difference), found.currency),
        "explained": money_text(abs(found.explained), found.currency),
        "left": money_text(abs(found.left), found.currency),
    }
    if all(group.status is Status.MATCHED for group in found.groups):
        return _("%(name)s billed for %(month)s what was counted here") % values
    if found.difference > 0:
        words = _("%(name)s billed %(difference)s more for %(month)s than counted here; %(left)s is left to explain")
    else:
        words = _("%(name)s billed %(difference)s less for %(month)s than counted here; %(left)s is left to explain")
    if not found.left:
        words = (
            _("%(name)s billed %(difference)s more for %(month)s than counted here; all of it is explained")
            if found.difference > 0
            else _("%(name)s billed %(difference)s less for %(month)s than counted here; all of it is explained")
        )
    return words % values


def sentence(one: Explanation) -> str:
    """One sentence, and the evidence behind it in figures."""
    words = str(REASONS[ReasonKind(one.kind)])
    evidence = evidence_text(one)
    return f"{words} {evidence}" if evidence else words


def evidence_text(one: Explanation) -> str:
    told = one.evidence
    if "billed_hours" in told:
        return _("Billed %(billed)s h, counted %(counted)s h.") % {
            "billed": told["billed_hours"],
            "counted": told["counted_hours"],
        }
    if "billed_price" in told:
        return _("Billed at %(billed)s an hour, counted at %(counted)s.") % {
            "billed": told["billed_price"],
            "counted": told["counted_price"],
        }
    if "start" in told:
        return _("%(start)s to %(end)s.") % {"start": moment_text(told["start"]), "end": moment_text(told["end"])}
    return ""


def moment_text(word: str) -> str:
    return date_format(datetime.fromisoformat(word), "j M H:i")


def signed(amount: Decimal, currency: str) -> str:
    """With its sign, as a difference is read: "+$1.20", "−$2.01"."""
    text = money_text(abs(amount), currency)
    return f"+{text}" if amount > 0 else f"−{text}" if amount < 0 else text
