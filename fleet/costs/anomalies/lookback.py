"""Whether a rule would have fired in the last 30 days, with given thresholds. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from fleet.costs.anomalies.rules.base import AnomalyKind, Facts, Limits

SPAN_DAYS = 30


@dataclass(frozen=True, slots=True)
class Fired:
    """`times`: days that follow each other count once. `days`: on which it would have been open. `judged`: days of which enough is known."""

    times: int
    days: tuple[date, ...]
    judged: int


def would_have_fired(rule: AnomalyKind, facts: Facts, limits: Limits) -> Fired:
    """Day after day, each from what was known when it had ended; what was open then is eased as it would have been."""
    days, times, judged = list[date](), 0, 0
    open_subjects: set[str] = set()
    for back in range(SPAN_DAYS, 0, -1):
        day = facts.today - timedelta(days=back)
        looked = rule.look(facts.as_of(day), limits, open_subjects)
        if looked is None:
            continue
        judged += 1
        found = {one.subject for one in looked}
        times += len(found - open_subjects)
        open_subjects = found
        if found:
            days.append(day)
    return Fired(times, tuple(days), judged)
