"""Which machines a stop begins for: idle by a fresh verdict, under a policy that stops, with nothing in the way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef

from fleet.idle.policies.covering import JudgedBy, judged_by
from fleet.idle.shutdown import alone
from fleet.idle.shutdown.barring import under_way, verb_of, why_not
from fleet.idle.shutdown.course import Course, Facts, Stage, Terms, advance
from fleet.idle.shutdown.facts import is_held
from fleet.idle.shutdown.journal import note_stage
from fleet.idle.shutdown.models import OPEN, IdleStop
from fleet.idle.shutdown.office import office_until
from fleet.idle.shutdown.terms import columns_of, terms_of, terms_to_keep
from fleet.idle.verdict.verdict import Answer
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.prices import price_now
from fleet.providers.base import InstanceState

# A verdict is made every minute.
FRESH = Terms().fresh
# A row of snoozes belongs together while it follows without a pause that lasts longer.
SAME_QUIET = timedelta(hours=2)


def begin_stops(*, now: datetime) -> int:
    """How many have begun; what is idle and is not to be stopped is told.

    However many machines are idle, those that nothing new is done with cost a constant number of queries.
    """
    verdicts = list(candidates(now))
    judged = judged_by([verdict.instance for verdict in verdicts])
    alone.clear_idle(now=now)
    alone.tell_idle(verdicts, judged, now=now)
    resting = _resting(verdicts, now)
    return sum(
        _begin(verdict, judged[verdict.instance_id], now)
        for verdict in verdicts
        if verdict.instance_id not in resting and not why_not(verdict.instance, judged[verdict.instance_id])
    )


def candidates(now: datetime) -> Iterator[IdleVerdictRow]:
    open_ones = IdleStop.objects.filter(OPEN, instance=OuterRef("instance"))
    rows = IdleVerdictRow.objects.filter(
        ~Exists(open_ones),
        answer=Answer.IDLE,
        judged_at__gte=now - FRESH,
        instance__gone_at=None,
        instance__managed=True,
        instance__state=InstanceState.RUNNING,
    )
    yield from rows.select_related("instance__account", "instance__team")


def _resting(verdicts: list[IdleVerdictRow], now: datetime) -> set[int]:
    """Machines that somebody said no about, a while ago."""
    machines = [verdict.instance_id for verdict in verdicts]
    rows = IdleStop.objects.filter(instance__in=machines, rests_until__gt=now)
    return set(rows.values_list("instance", flat=True))


def _begin(verdict: IdleVerdictRow, judged: JudgedBy, now: datetime) -> bool:
    """False: something speaks against it, or somebody else was quicker."""
    policy, machine = judged.policy, verdict.instance
    assert policy is not None
    kept = terms_to_keep(policy)
    facts = Facts(
        now=now,
        idle=True,
        judged_at=verdict.judged_at,
        held=is_held(machine, now),
        office_until=office_until(policy, now),
        barred="under_way" if under_way(machine) else "",
    )
    course, acts = advance(Course(), facts, terms_of(kept))
    if course.stage is Stage.WATCHING:
        return False
    stop = IdleStop(
        team_id=machine.team_id,
        instance=machine,
        policy=policy,
        policy_name=policy.name,
        verb=verb_of(policy),
        terms=kept,
        because=verdict.because,
        quiet_since=verdict.quiet_since,
        price_per_hour=price_now(machine),
        currency=machine.currency,
        snoozes=_snoozes_before(machine.pk, now),
        pending=[act.value for act in acts],
        began_at=now,
        next_at=now,
        **columns_of(course),
    )
    return _insert(stop, now)


def _insert(stop: IdleStop, now: datetime) -> bool:
    try:
        with transaction.atomic():
            stop.save(force_insert=True)
            note_stage(stop, at=now)
    except IntegrityError:
        return False
    return True


def _snoozes_before(instance_id: int, now: datetime) -> int:
    """They are counted over one quiet time, however many warnings it has."""
    last = IdleStop.objects.filter(instance=instance_id, ended_at__isnull=False).order_by("-ended_at").first()
    if last is None or last.why != "snoozed" or last.rests_until is None or now - last.rests_until > SAME_QUIET:
        return 0
    return last.snoozes
