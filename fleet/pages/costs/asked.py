"""What the address of the costs page asks for: a month, a split, and filters that links add one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Where

SPLITS: dict[By, str | Promise] = {
    By.PROJECT: _("Project"),
    By.PROVIDER: _("Provider"),
    By.STATE: _("GPU state"),
    By.OWNER: _("Owner"),
    By.ACCOUNT: _("Account"),
    By.MACHINE: _("Machine"),
    By.METER: _("Charge"),
    By.GPU_MODEL: _("GPU"),
    By.MARKET: _("Market"),
    By.TENANCY: _("Tenancy"),
    By.REGION: _("Region"),
    By.JOB: _("Job"),
}
# Those that fit beside the heading; the others lie in a select.
NEAR = (By.PROJECT, By.PROVIDER, By.STATE)
# Splits whose values can be chosen as a filter, by the name of the filter.
FILTERS = {By.PROJECT: "project", By.OWNER: "owner", By.ACCOUNT: "account", By.MACHINE: "machine", By.METER: "meter"}
# As a filter: what belongs to no project or person.
NOBODY = "none"


@dataclass(frozen=True, slots=True)
class Asked:
    """A reading of the address; what makes no sense in it is left out, never an error. `label`: the key when money is split by a label."""

    month: Month
    by: By = By.PROJECT
    label: str = ""
    chosen: dict[By, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: QueryDict, month: Month) -> Asked:
        by, label = query.get("by", ""), query.get("label", "")[:63]
        split = By.LABEL if by == By.LABEL and label else By(by) if by in SPLITS else By.PROJECT
        chosen = {dimension: value[:80] for dimension, name in FILTERS.items() if (value := query.get(name, ""))}
        return cls(month, split, label if split is By.LABEL else "", {k: v for k, v in chosen.items() if _usable(k, v)})

    @property
    def where(self) -> Where:
        return Where(
            projects=self._ids(By.PROJECT),
            owners=self._ids(By.OWNER),
            accounts=tuple(pk for pk in self._ids(By.ACCOUNT) if pk is not None),
            instances=tuple(pk for pk in self._ids(By.MACHINE) if pk is not None),
            meters=(self.chosen[By.METER],) if By.METER in self.chosen else (),
        )

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """The filters as fields of a form."""
        return [(FILTERS[dimension], value) for dimension, value in self.chosen.items()]

    def _ids(self, dimension: By) -> tuple[int | None, ...]:
        value = self.chosen.get(dimension)
        return () if value is None else (None if value == NOBODY else int(value),)

    def query(self, *, by: By | None = None, add: tuple[By, str] | None = None, drop: By | None = None) -> str:
        """The address's query with these changes, beginning with "?"."""
        split = by or self.by
        words = {"month": str(self.month), "by": split.value, "label": self.label if split is By.LABEL else ""}
        chosen = self.chosen | ({add[0]: add[1]} if add else {})
        words |= {FILTERS[dimension]: value for dimension, value in chosen.items() if dimension is not drop}
        return "?" + urlencode({name: word for name, word in words.items() if word})


def _usable(dimension: By, value: str) -> bool:
    if dimension is By.METER:
        return True
    nobody = value == NOBODY and dimension in {By.PROJECT, By.OWNER}
    return nobody or (value.isascii() and value.isdigit() and len(value) < 19)
