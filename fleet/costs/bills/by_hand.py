"""What a person took from a file stands before what the provider answers of the same: told twice, it would be billed twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from fleet.costs.bills.billed import current_lines, key_of, middle_of
from fleet.costs.bills.matching import APART, MeterClass
from fleet.costs.bills.models import BillLine, BillSource
from fleet.inventory.models import ProviderAccount

Subject = tuple[int, str, MeterClass, str]


class ByHand:
    """Lines of files, by what they are about."""

    def __init__(self, lines: Iterable[BillLine]) -> None:
        self._lines: dict[Subject, list[BillLine]] = defaultdict(list)
        for line in lines:
            for subject in subjects_of(line):
                self._lines[subject].append(line)

    def says(self, told: BillLine) -> bool:
        """Whether one of them is of the same machine (or resource) and class, and of the time in which most of `told` lies.

        Of what names neither, only a sum over a longer time is known to hold it.
        """
        key, at = key_of(told), middle_of(told)
        length = told.ends_at - told.starts_at
        near = (line for line in self._lines.get(subject_of(told), ()) if line.starts_at <= at < line.ends_at)
        return any(key.machine or key.name or line.ends_at - line.starts_at > length for line in near)


def subject_of(line: BillLine) -> Subject:
    """Whatever has no class of its own is told apart by what its bill calls it."""
    key = key_of(line)
    return key.machine, key.name, key.meter, line.raw_kind if key.meter is MeterClass.OTHER else ""


def subjects_of(line: BillLine) -> Iterator[Subject]:
    """A machine's one sum is for every class, and every class is a part of it."""
    machine, name, meter, raw_kind = subject_of(line)
    yield machine, name, meter, raw_kind
    if meter is MeterClass.ALL:
        yield from ((machine, name, one, "") for one in MeterClass if one not in {MeterClass.ALL, *APART})
    elif meter not in APART:
        yield machine, name, MeterClass.ALL, ""


def said_by_hand(account: ProviderAccount, rows: Iterable[BillLine]) -> set[str]:
    """The keys of those that a file that counts says already. One query."""
    told = list(rows)
    if not told:
        return set()
    first, last = min(row.starts_at for row in told), max(row.ends_at for row in told)
    files = current_lines(account).filter(starts_at__lt=last, ends_at__gt=first).exclude(bill__source=BillSource.API)
    by_hand = ByHand(files)
    return {row.key for row in told if by_hand.says(row)}
