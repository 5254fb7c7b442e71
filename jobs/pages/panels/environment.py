"""What each machine of an attempt is, as it said itself before the launch, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job, Node
from jobs.pages.panels.panel import JobPanel
from jobs.plans.words import remark_text

MARKS = {"refused": "urgent", "warning": "warning", "note": "note"}


@dataclass(frozen=True, slots=True)
class RemarkLine:
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class MachineLine:
    """`facts`: Node.facts, which the machine said: escaped wherever it is shown."""

    node: Node
    facts: Mapping[str, Any]

    @property
    def remarks(self) -> list[RemarkLine]:
        return list(remark_lines(self.facts.get("warnings", ())))

    @property
    def gpus(self) -> str:
        """Alike ones are counted."""
        names = [str(card.get("name", "")) for card in self.facts.get("gpus") or ()]
        return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))

    @property
    def gpu_bytes(self) -> int | None:
        cards = self.facts.get("gpus") or ()
        return cards[0].get("memory_bytes") if cards else None

    @property
    def software(self) -> list[str]:
        """The driver first, then what runs on it."""
        said = [
            (name, self.facts.get(key)) for name, key in (("driver", "driver"), ("Python", "python"), ("nvcc", "nvcc"))
        ]
        torch = self.facts.get("torch")
        build = _("for the CPU") if self.facts.get("torch_cuda") == "none" else ""
        said += [
            ("torch", f"{torch} {build}".strip() if torch else None),
            *dict(self.facts.get("packages") or {}).items(),
        ]
        return [f"{name} {version}" for name, version in said if version]


def remark_lines(warnings: Any) -> Iterator[RemarkLine]:
    for one in warnings:
        if text := remark_text(str(one.get("code", "")), one.get("values", {})):
            yield RemarkLine(MARKS.get(one.get("level", ""), "note"), text)


def context(_request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any] | None:
    nodes = attempt.nodes.select_related("instance").order_by("rank")
    lines = [MachineLine(node, node.facts) for node in nodes if "looked_at" in node.facts]
    return {"machines": lines} if lines else None


PANEL = JobPanel("environment", "jobs/panels/environment.html", context)
