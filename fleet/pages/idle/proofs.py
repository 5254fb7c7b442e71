"""A stop as a line of six: warned, grace, pre-stop, stopping, verifying, proved or failed; its end says the money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from fleet.formats import money_text
from fleet.idle.shutdown.models import IdleSaving, IdleStop, IdleStopEvent, IdleStopStage
from fleet.idle.shutdown.words import why_words
from fleet.inventory.operations.progress import Step
from fleet.inventory.operations.words import failure_words
from fleet.pages.idle.stops import RELATED, hours_money
from fleet.teams.models import Team

SHOWN = 4
SPAN = timedelta(days=7)
Text = str | Promise
LINE: Sequence[tuple[IdleStopStage, Text]] = (
    (IdleStopStage.WARNED, pgettext_lazy("step of a stop", "Warned")),
    (IdleStopStage.GRACE, pgettext_lazy("step of a stop", "Grace")),
    (IdleStopStage.PRESTOP, pgettext_lazy("step of a stop", "Pre-stop")),
    (IdleStopStage.STOPPING, pgettext_lazy("step of a stop", "Stopping")),
    (IdleStopStage.VERIFYING, pgettext_lazy("step of a stop", "Verifying")),
    (IdleStopStage.STOPPED, pgettext_lazy("step of a stop", "Proved")),
)
FAILED: Text = pgettext_lazy("step of a stop", "Failed")
PLACES = {stage: place for place, (stage, _word) in enumerate(LINE)}
BEGUN = Q(stage__in=[*PLACES, IdleStopStage.FAILED])


@dataclass(frozen=True)
class Proof:
    """`events`: the newest of each kind."""

    stop: IdleStop
    events: dict[str, IdleStopEvent]
    saving: IdleSaving | None
    at: datetime

    @property
    def failed(self) -> bool:
        return self.stop.stage == IdleStopStage.FAILED

    @cached_property
    def steps(self) -> list[Step]:
        return [self._step(place) for place in range(len(LINE))]

    def _step(self, place: int) -> Step:
        stage, word = LINE[place]
        event = self.events.get(stage)
        if self.failed and place == len(LINE) - 1:
            return Step("failed", str(FAILED), self.stop.since, self._failed_detail())
        mark = self._mark(place)
        if mark == "todo":
            return Step(mark, str(word))
        detail = self._detail(stage, event)
        return Step(mark, str(word), event.at if event else None, detail)

    def _mark(self, place: int) -> str:
        if self.failed:
            return "failed" if LINE[place][0] == IdleStopStage.VERIFYING else "done"
        now = PLACES[IdleStopStage(self.stop.stage)]
        if self.stop.stage == IdleStopStage.STOPPED:
            return "done"
        return "done" if place < now else "now" if place == now else "todo"

    def _detail(self, stage: IdleStopStage, event: IdleStopEvent | None) -> str:
        if stage == IdleStopStage.PRESTOP:
            return self.stop.hook_detail or self._hook_words()
        return why_words(event.detail) if event else ""

    def _hook_words(self) -> str:
        words = {
            "none": _("the machine has no hook of its own"),
            "running": _("its hook runs"),
            "done": _("its hook is done"),
            "failed": _("its hook failed"),
        }
        return words.get(self.stop.hook, "")

    def _failed_detail(self) -> str:
        if self.stop.refused:
            return failure_words(self.stop.refused)
        if self.stop.orders > 1:
            return _("still running and billed after %(n)d orders") % {"n": self.stop.orders}
        return _("still running and billed")

    @property
    def end_words(self) -> str:
        """What it has saved, or has cost since it was ordered in vain."""
        if self.saving is not None:
            return _("saved so far: %(money)s") % {"money": money_text(self.saving.amount, self.saving.currency)}
        if self.stop.price_per_hour is None:
            return ""
        if self.failed and self.stop.ordered_at is not None:
            burnt = hours_money(self.stop.price_per_hour, self.at - self.stop.ordered_at)
            return _("%(money)s burnt after the order") % {"money": money_text(burnt, self.stop.currency)}
        if self.stop.quiet_since is None or self.stop.stage == IdleStopStage.STOPPED:
            return ""
        lost = hours_money(self.stop.price_per_hour, self.at - self.stop.quiet_since)
        return _("idle so far: %(money)s") % {"money": money_text(lost, self.stop.currency)}


def proofs(team: Team, *, now: datetime) -> list[Proof]:
    """What is under way or was proved lately: what failed first, the newest first."""
    rows = IdleStop.objects.filter(BEGUN, team=team).filter(Q(ended_at=None) | Q(ended_at__gt=now - SPAN))
    stops = list(rows.select_related(*RELATED).order_by("-began_at")[:SHOWN])
    stops.sort(key=lambda stop: stop.stage != IdleStopStage.FAILED)
    return proofs_of(stops, now=now)


def proofs_of(stops: Sequence[IdleStop], *, now: datetime) -> list[Proof]:
    events: dict[int, dict[str, IdleStopEvent]] = {stop.pk: {} for stop in stops}
    for event in IdleStopEvent.objects.filter(stop__in=stops).order_by("at", "pk"):
        events[event.stop_id][event.kind] = event
    savings = {saving.stop_id: saving for saving in IdleSaving.objects.filter(stop__in=stops)}
    return [Proof(stop, events[stop.pk], savings.get(stop.pk), now) for stop in stops]
