"""The page of a dry run: its headline, figures, charts and a line for each stop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet, prefetch_related_objects
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.formats import UNKNOWN, duration_text, money_text, whole_money_text
from fleet.idle.dryrun.charts import compared, lanes_chart, lanes_of, windows_chart
from fleet.idle.dryrun.dry_run import Counted, DryRun, Ground, ground_of, try_window
from fleet.idle.dryrun.forms import COSTS, DAYS, Asked
from fleet.idle.dryrun.kept import keep, kept
from fleet.idle.dryrun.plain import plain
from fleet.idle.dryrun.quiet import Ending
from fleet.idle.dryrun.recommend import advice_on
from fleet.idle.dryrun.simulate import Judged
from fleet.idle.dryrun.words import advice_text, gpu_hours_text, interval_text, minutes_text, own_text
from fleet.idle.policies.covering import stops, window_of
from fleet.idle.policies.models import IdlePolicy, IdleWindowFrom
from fleet.inventory.models import Instance
from fleet.panels import Context
from fleet.teams.models import Team

OFFERED_MINUTES = (5, 15, 30, 60, 90, 120, 180, 360, 600)
# The newest ones; the file over the API has all.
MOST_ROWS = 200
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    words: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One stop of the table."""

    counted: Counted
    machine: Instance
    currency: str

    @property
    def at(self) -> datetime:
        return self.counted.stop.at

    @property
    def returned_at(self) -> datetime | None:
        stop = self.counted.stop
        return stop.until if stop.ending is Ending.RETURN else None

    @property
    def next_work(self) -> str:
        return next_work_words(self.counted.stop.ending)

    @property
    def hours(self) -> str:
        return f"{self.counted.stop.gpu_hours:,.1f}"

    @property
    def money(self) -> str:
        return money_words(self.counted.money.net, self.currency)

    @property
    def verdict(self) -> str:
        return verdict_words(self.counted)

    @property
    def more(self) -> str:
        return more_words(self.counted)

    @property
    def about(self) -> str:
        parts = (
            f"{self.machine.gpu_count} × {self.machine.gpu_model}" if self.machine.gpu_model else "",
            owner_of(self.machine),
        )
        return ", ".join(part for part in parts if part)


def owner_of(machine: Instance) -> str:
    return machine.owner.display_name if machine.owner else ""


def money_words(amount: Decimal | None, currency: str) -> str:
    if amount is None:
        return UNKNOWN
    return money_text(amount, currency).replace("-", "−", 1)


def next_work_words(ending: Ending) -> str:
    """Where no work came back."""
    return {
        Ending.NOW: _("none yet"),
        Ending.OFF: _("switched off"),
        Ending.UNKNOWN: _("not known"),
        Ending.RETURN: "",
    }[ending]


def verdict_words(counted: Counted) -> str:
    stop = counted.stop
    if stop.judged is Judged.WRONG:
        return _("Would have hit %(run)s") % {"run": stop.run} if stop.run else _("Would have hit work")
    return _("Not known") if stop.judged is Judged.UNCLEAR else _("Right")


def more_words(counted: Counted) -> str:
    stop = counted.stop
    said = {"time": duration_text((stop.until - stop.at).total_seconds())}
    if stop.judged is Judged.WRONG:
        return _("work came back %(time)s after the stop") % said
    if stop.judged is Judged.UNCLEAR:
        return _("its readings end %(time)s after the stop") % said
    return _("still idle") if stop.ending is Ending.NOW else _("idle %(time)s more") % said


def page_of(policy: IdlePolicy, asked: Asked, *, now: datetime) -> Context:
    ground = ground_of(policy=policy, days=asked.days, now=now, cost=asked.cost)
    shown = try_window(ground, asked.window or window_of(policy))
    advice = kept_advice(ground, asked.days)
    points = compared(ground, shown, [advice["minutes"]] if advice["minutes"] else [])
    lines = lines_of(shown)
    return {
        "policy": policy,
        "shown": shown,
        "totals": shown.totals,
        "title": title_words(policy, shown),
        "window_words": window_words(policy, shown),
        "stats": stats_of(shown),
        "lines": lines,
        "others": len(shown.stops) - len(lines),
        "sum": {
            "hours": f"{shown.totals.gpu_hours:,.1f}",
            "money": money_words(shown.totals.net, ground.rates.currency),
        },
        "windows_table": [(minutes_text(minutes), totals) for minutes, totals in points],
        "currency": ground.rates.currency,
        "charts": {
            "dry-windows": windows_chart(shown, points, advice["minutes"]),
            "dry-lanes": lanes_chart(shown),
        },
        "lanes_left": len({one.stop.instance_id for one in shown.stops}) - len(lanes_of(shown)),
        "advice": advice,
        "advice_text": advice_text(advice),
        "interval_text": interval_text(advice),
        "own": own_lines(ground, advice),
        "is_on": policy.enabled and stops(policy),
    }


def controls_of(policy: IdlePolicy, asked: Asked, team: Team) -> Context:
    return {
        "policies": standing(team),
        "windows": window_choices(policy, asked),
        "days_choices": [Choice(str(days), days_words(days), days == asked.days) for days in DAYS],
        "costs": [Choice(value, cost_words(value, policy), value == asked.cost.preset) for value in COSTS],
        "own_gpu_hours": asked.cost.gpu_hours,
    }


def standing(team: Team) -> QuerySet[IdlePolicy]:
    return IdlePolicy.objects.filter(team=team, removed_at=None).order_by("position", "pk")


def window_choices(policy: IdlePolicy, asked: Asked) -> list[Choice]:
    own = round(window_of(policy) / MINUTE)
    here = own if asked.window is None else round(asked.window / MINUTE)
    minutes = sorted({*OFFERED_MINUTES, own, here, policy.recommended_minutes or own})
    return [Choice(str(one), own_words(policy, one, own), one == here) for one in minutes]


def own_words(policy: IdlePolicy, minutes: int, own: int) -> str:
    text = minutes_text(minutes)
    if minutes == policy.recommended_minutes:
        return _("%(window)s, recommended") % {"window": text}
    return _("%(window)s, as it is set") % {"window": text} if minutes == own else text


def days_words(days: int) -> str:
    return ngettext("the last %(n)d day", "the last %(n)d days", days) % {"n": days}


def cost_words(value: str, policy: IdlePolicy) -> str:
    if value == "restart":
        return _("%(minutes)d min of all its GPUs") % {"minutes": policy.restart_minutes}
    return str(COSTS[value])


def kept_advice(ground: Ground, days: int) -> dict[str, Any]:
    """Reckoned once for the same past, cost, grace and office hours."""
    policy, cost = ground.policy, ground.cost
    key = f"{ground.past}:{policy.pk}:{policy.revision}:{cost.gpu_hours}:{cost.restart_minutes}"
    found: dict[str, Any] | None = kept(key)
    if found is None:
        found = plain(advice_on(ground), cost=ground.cost, days=days)
        keep(key, found)
    return found


def own_lines(ground: Ground, advice: dict[str, Any]) -> list[tuple[Instance, str]]:
    found = ((ground.machines.get(int(pk)), own) for pk, own in advice["own"].items())
    return [(machine, own_text(own["minutes"], own)) for machine, own in found if machine is not None]


def title_words(policy: IdlePolicy, shown: DryRun) -> str:
    totals = shown.totals
    if not totals.stops:
        return _("%(policy)s, dry run: nothing would have been stopped") % {"policy": policy.name}
    back = whole_money_text(totals.net, shown.ground.rates.currency).replace("-", "−", 1)
    said = {"policy": policy.name, "back": back, "n": totals.wrong}
    if not totals.wrong:
        return _("%(policy)s, dry run: %(back)s back, no run hit") % said
    return (
        ngettext(
            "%(policy)s, dry run: %(back)s back, %(n)d run hit",
            "%(policy)s, dry run: %(back)s back, %(n)d runs hit",
            totals.wrong,
        )
        % said
    )


def window_words(policy: IdlePolicy, shown: DryRun) -> str:
    text = duration_text(shown.window.total_seconds())
    if round(shown.window / MINUTE) == policy.recommended_minutes and policy.window_from == IdleWindowFrom.RECOMMENDED:
        return _("window %(time)s, recommended") % {"time": text}
    return _("window %(time)s") % {"time": text}


@dataclass(frozen=True, slots=True)
class Stat:
    label: str
    value: str
    unit: str = ""
    note: str = ""
    tone: str = ""


def stats_of(shown: DryRun) -> list[Stat]:
    totals, currency = shown.totals, shown.ground.rates.currency
    times = _("times")
    right = totals.stops - totals.wrong - totals.unclear
    on = ngettext("on %(n)d machine, %(right)d rightly", "on %(n)d machines, %(right)d rightly", totals.machines)
    idle = gpu_hours_text(shown.ground.idle_gpu_hours)
    return [
        Stat(_("Would have stopped"), str(totals.stops), times, on % {"n": totals.machines, "right": right}),
        Stat(
            _("GPU-hours back"),
            gpu_hours_text(totals.gpu_hours),
            "",
            _("of %(hours)s with a whole machine idle") % {"hours": idle},
        ),
        Stat(_("Money back"), whole_money_text(totals.net, currency).replace("-", "−", 1), "", money_note(shown)),
        Stat(
            _("False stops"),
            str(totals.wrong),
            "",
            _("work came back within 30 min"),
            "stalled" if totals.wrong else "",
        ),
        Stat(_("Would have asked"), str(len(shown.asked)), times, _("in office hours; not counted")),
    ]


def money_note(shown: DryRun) -> str:
    totals = shown.totals
    if totals.unpriced:
        said = ngettext("%(n)d stop has no known price", "%(n)d stops have no known price", totals.unpriced)
        return said % {"n": totals.unpriced}
    if not totals.wrong:
        return _("less what stopped machines cost")
    said = ngettext("less %(harm)s for the run it hit", "less %(harm)s for the runs it hit", totals.wrong)
    return said % {"harm": money_text(totals.harm, shown.ground.rates.currency)}


def lines_of(shown: DryRun) -> list[Line]:
    """The newest first."""
    machines, currency = shown.ground.machines, shown.ground.rates.currency
    prefetch_related_objects(list(machines.values()), "owner")
    newest = list(reversed(shown.stops))[:MOST_ROWS]
    return [Line(one, machines[one.stop.instance_id], currency) for one in newest]
