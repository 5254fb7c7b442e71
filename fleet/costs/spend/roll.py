"""Summing: what changed in the ledger, in who it belongs to or in what GPUs did becomes days of money.

LedgerChange is the queue. A step takes some of it, and writes cost_day, cost_group_day and cost_month in one transaction that a crash
undoes and the next run repeats. What goes on is put into the queue at the beginning of each run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from psycopg import sql

from fleet.costs.book.models import LedgerChange
from fleet.costs.spend import statements
from fleet.costs.spend.days import ONE_DAY, Day, begin_of, day_of, days_between
from fleet.costs.spend.models import CostDay, CostGroupDay, CostMonth, CostProgress
from fleet.costs.spend.reading import next_month
from fleet.teams.models import Team
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.rollups.models import RollupProgress
from fleet.telemetry.rollups.roll import tune

# With the team's id: one step of a team at a time.
LOCK = 1_720_414_201
# Of one step: 10,000 machines today, or 300 for a month.
MACHINE_DAYS_AT_ONCE = 10_000
# Before this, a changed zone of time cannot reach: zones lie up to 14 hours off UTC, either way.
ZONES_APART = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Days of a machine, or (instance_id 0) of what an account is charged for without one, from `day` on. `changes`: rows of the queue that ask for them."""

    account_id: int
    instance_id: int
    day: date
    changes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """Whose days, [first, past_last) of them; the month after the last is never reached."""

    wanted: tuple[Wanted, ...]
    first: date
    past_last: date


@dataclass(slots=True)
class Summed:
    """What a run did. `is_complete`: nothing was left."""

    steps: int = 0
    is_complete: bool = True


def sum_costs(*, now: datetime, budget_seconds: float | None = None) -> Summed:
    """Of all teams: first what is new, then what of the past is summed again. Stops between two steps once the budget is spent.

    The next run goes on.
    """
    ends = None if budget_seconds is None else time.monotonic() + budget_seconds
    summed = Summed()
    for _step in _steps(
        list(Team.objects.filter(accounts__isnull=False).distinct().order_by("pk")), now.replace(microsecond=0)
    ):
        summed.steps += 1
        if ends is not None and time.monotonic() >= ends:
            return Summed(summed.steps, is_complete=False)
    return summed


def _steps(teams: Sequence[Team], now: datetime) -> Iterator[None]:
    for team in teams:
        ask_for_open(team, now=now)
        while sum_step(team, now=now, recent=True):
            yield
        finish(team, now=now)
    for team in teams:
        while sum_step(team, now=now, recent=False):
            yield


@transaction.atomic
def ask_for_open(team: Team, *, now: datetime) -> None:
    """Whatever goes on, since it was summed last; and the hours that were rolled up since. All of it if the days begin elsewhere now."""
    take_lock(team)
    rolled_until = RollupProgress.objects.filter(resolution=HOUR.name).values_list("rolled_until", flat=True).first()
    progress = CostProgress.objects.filter(team=team).first()
    if progress is None or progress.time_zone != team.time_zone:
        ask_for_all(team)
        CostProgress.objects.update_or_create(
            team=team, defaults={"time_zone": team.time_zone, "summed_until": now, "rolled_until": rolled_until}
        )
        return
    # A clock that was set back asks for nothing that is to come.
    since = min(progress.summed_until, now)
    if rolled_until != progress.rolled_until:
        since = min(since, progress.rolled_until or since - ONE_DAY)
        progress.rolled_until = rolled_until
        progress.save(update_fields=["rolled_until"])
    execute(_ASK_FOR_OPEN, {"team_id": team.pk, "since": since, "now": now})


# The machine's day is summed as a whole: an hour that was rolled up late brings the rest of its day along.
_ASK_FOR_OPEN = """
INSERT INTO ledger_change (account_id, instance_id, from_at)
SELECT DISTINCT meter.account_id, meter.instance_id, %(since)s::timestamptz
FROM ledger_interval one JOIN ledger_meter meter ON meter.id = one.meter_id
WHERE meter.team_id = %(team_id)s AND meter.kind <> 'nothing' AND one.period && tstzrange(%(since)s, %(now)s)
UNION SELECT account_id, instance_id, %(since)s::timestamptz FROM cost_adjustment
WHERE team_id = %(team_id)s AND at >= %(since)s AND at < %(now)s
"""
_ASK_FOR_ALL = """
INSERT INTO ledger_change (account_id, instance_id, from_at)
SELECT account_id, instance_id, min(from_at) - %(apart)s::interval FROM (
    SELECT meter.account_id, meter.instance_id, lower(one.period) AS from_at
    FROM ledger_interval one JOIN ledger_meter meter ON meter.id = one.meter_id WHERE meter.team_id = %(team_id)s
    UNION ALL SELECT account_id, instance_id, at FROM cost_adjustment WHERE team_id = %(team_id)s
    UNION ALL SELECT "group".account_id, day.instance_id, day::timestamp AT TIME ZONE 'UTC'
    FROM cost_day day JOIN cost_group "group" ON "group".id = day.group_id WHERE day.team_id = %(team_id)s
) AS found GROUP BY account_id, instance_id
"""
_ASK_AGAIN = """
INSERT INTO ledger_change (account_id, instance_id, from_at)
SELECT account_id, id, %(since)s FROM fleet_instance WHERE id = ANY(%(ids)s)
"""
_QUEUE = """
SELECT change.account_id, coalesce(change.instance_id, 0), min(change.from_at), array_agg(change.id)
FROM ledger_change change JOIN fleet_provideraccount account ON account.id = change.account_id
WHERE account.team_id = %(team_id)s AND (change.from_at >= %(yesterday)s) = %(recent)s GROUP BY 1, 2 ORDER BY 3, 1, 2
"""


@transaction.atomic
def sum_anew(team: Team) -> None:
    """Forget all sums of a team and make them again: totals are not complete until the next runs are done."""
    take_lock(team)
    ask_for_all(team)
    for rows in (CostDay.objects, CostGroupDay.objects, CostMonth.objects):
        rows.filter(team=team).delete()


def ask_for_all(team: Team) -> None:
    execute(_ASK_FOR_ALL, {"team_id": team.pk, "apart": ZONES_APART})


@transaction.atomic
def sum_step(team: Team, *, now: datetime, recent: bool) -> bool:
    """`recent`: of what is asked for since yesterday, else of what is before. False: nothing of it is left in the queue."""
    take_lock(team)
    zone = ZoneInfo(team.time_zone)
    step = next_step(read_queue(team, zone, now=now, recent=recent), today=day_of(now, zone))
    if step is None:
        return False
    write(team, step, list(days_between(step.first, step.past_last, zone, now=now)))
    take_out(step, zone, today=day_of(now, zone))
    return True


def read_queue(team: Team, zone: ZoneInfo, *, now: datetime, recent: bool) -> list[Wanted]:
    """The oldest first."""
    yesterday = begin_of(day_of(now, zone) - ONE_DAY, zone)
    rows = execute(_QUEUE, {"team_id": team.pk, "recent": recent, "yesterday": yesterday})
    return [
        Wanted(account, instance, day_of(since, zone), tuple(changes)) for account, instance, since, changes in rows
    ]


def next_step(queue: Sequence[Wanted], *, today: date, most: int = MACHINE_DAYS_AT_ONCE) -> Step | None:
    """`queue`: the oldest first. A step ends with its month, so that each row of it belongs to one month."""
    if not queue:
        return None
    first = queue[0].day
    past_last = max(min(next_month(first), today + ONE_DAY), first + ONE_DAY)
    wanted: list[Wanted] = []
    left = most
    for one in queue:
        if one.day >= past_last or left <= 0:
            break
        wanted.append(one)
        left -= (past_last - one.day).days
    return Step(tuple(wanted), first, past_last)


def write(team: Team, step: Step, days: Sequence[Day]) -> None:
    if not days:
        return
    tune()
    parameters = whose(team, step.wanted) | {
        "since_days": [one.day for one in step.wanted],
        "days": [one.day for one in days],
        "sinces": [one.since for one in days],
        "untils": [one.until for one in days],
        "since": days[0].since,
        "until": days[-1].until,
        "first_day": step.first,
        "past_last_day": step.past_last,
    }
    touched = execute(day_statement(), parameters)
    pairs = sorted({(day, group) for day, group, _instance in touched})
    instances = {instance or 0 for _day, _group, instance in touched}
    if not pairs:
        return
    execute(
        group_day_statement(),
        {"team_id": team.pk, "days": [day for day, _group in pairs], "groups": [group for _day, group in pairs]},
    )
    month = step.first.replace(day=1)
    wanted = [one for one in step.wanted if one.instance_id in instances]
    execute(month_statement(), whose(team, wanted) | {"month": month, "past_month": next_month(month)})


def whose(team: Team, wanted: Sequence[Wanted]) -> dict[str, Any]:
    return {
        "team_id": team.pk,
        "accounts": [one.account_id for one in wanted],
        "instances": [one.instance_id for one in wanted],
    }


# The same text each time; putting it together takes longer than a small step does.
day_statement = cache(statements.sum_days)
group_day_statement = cache(statements.sum_group_days)
month_statement = cache(statements.sum_months)


def take_out(step: Step, zone: ZoneInfo, *, today: date) -> None:
    """What was asked for is done, or goes on with the next month. What was written into the queue meanwhile stays in it."""
    LedgerChange.objects.filter(pk__in=[pk for one in step.wanted for pk in one.changes]).delete()
    if step.past_last > today:
        return
    from_at = begin_of(step.past_last, zone)
    LedgerChange.objects.bulk_create(
        LedgerChange(account_id=one.account_id, instance_id=one.instance_id or None, from_at=from_at)
        for one in step.wanted
    )


def finish(team: Team, *, now: datetime) -> None:
    CostProgress.objects.filter(team=team, time_zone=team.time_zone).update(summed_until=now)


def take_lock(team: Team) -> None:
    """Until the transaction ends. Steps are short: whoever waits for one is next."""
    execute("SELECT pg_advisory_xact_lock(%(lock)s, %(team_id)s)", {"lock": LOCK, "team_id": team.pk})


def execute(query: str | sql.Composed, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall() if cursor.description else []


def ask_again(*, since: datetime, instance_ids: Sequence[int], **_signal: object) -> None:
    """Late samples changed what the GPUs of these machines did. Within the transaction that rolled them up again."""
    execute(_ASK_AGAIN, {"since": since, "ids": instance_ids})
