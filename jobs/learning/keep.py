"""Writes what finished attempts came to; and says it of one, finished or not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db import transaction

from fleet.telemetry.store.base import StoreError
from jobs.book.models import Attempt
from jobs.learning.measures import Compared, compared_with, family_of
from jobs.learning.measuring import measured_of
from jobs.learning.models import Outcome, OutcomeFigure
from jobs.learning.taught import lines_of

logger = logging.getLogger(__name__)
# The last readings of an agent come with its next batch, and after a broken line later.
SETTLES = timedelta(minutes=2)
AT_ONCE = 20
# A page asks every few seconds.
KEPT_SECONDS = 30


def learn(*, now: datetime) -> int:
    """Of every attempt that has ended and has no outcome yet, the newest first. One that cannot be measured keeps no other from it."""
    rows = Attempt.objects.filter(outcome=None, ended_at__lte=now - SETTLES).select_related("job")
    learnt = 0
    for attempt in rows.order_by("-ended_at", "-pk")[:AT_ONCE]:
        try:
            learnt += learn_from(attempt, now=now)
        except StoreError:
            logger.warning("Attempt %d is measured later: readings cannot be read", attempt.pk)
        except Exception:
            logger.exception("Attempt %d could not be measured", attempt.pk)
    return learnt


def learn_from(attempt: Attempt, *, now: datetime) -> bool:
    """False where it was done already. Raises StoreError."""
    assert attempt.ended_at is not None
    predicted = attempt.job.predicted
    lines = compared_with(predicted, measured_of(attempt, now=now))
    with transaction.atomic():
        outcome, made = Outcome.objects.get_or_create(
            attempt=attempt,
            defaults={
                "team_id": attempt.job.team_id,
                "ended_at": attempt.ended_at,
                "measured_at": now,
                **alike_of(predicted),
            },
        )
        if made:
            OutcomeFigure.objects.bulk_create(_figure(outcome, line) for line in lines)
    return made


def alike_of(predicted: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of Outcome by which runs are alike."""
    gpus = predicted.get("gpus")
    return {
        "work": _word(predicted, "work", 12),
        "method": _word(predicted, "method", 40),
        "model": _word(predicted, "model", 200),
        "family": family_of(_word(predicted, "model", 200)),
        "gpu": _word(predicted, "gpu", 60),
        "launcher": _word(predicted, "launcher", 40),
        "currency": _word(predicted, "currency", 3),
        "gpus": gpus if isinstance(gpus, int) and 0 < gpus < 1_000_000 else None,
    }


def _word(predicted: Mapping[str, Any], name: str, most: int) -> str:
    value = predicted.get(name)
    return value[:most] if isinstance(value, str) else ""


def _figure(outcome: Outcome, line: Compared) -> OutcomeFigure:
    return OutcomeFigure(
        outcome=outcome,
        measure=line.measure,
        predicted=line.predicted,
        measured=line.measured,
        missing=line.missing,
    )


def compared(attempt: Attempt, *, now: datetime) -> list[Compared]:
    """Plan against measured of one attempt: as it was kept, else as it stands. Empty where readings cannot be read."""
    kept = Outcome.objects.filter(attempt=attempt).prefetch_related("figures").first()
    if kept is not None:
        return lines_of(kept)
    return _standing(attempt, now)


def _standing(attempt: Attempt, now: datetime) -> list[Compared]:
    key = f"jobs.compared.{attempt.pk}.{attempt.state}"
    found: list[Compared] | None = cache.get(key)
    if found is None:
        try:
            found = compared_with(attempt.job.predicted, measured_of(attempt, now=now))
        except StoreError:
            return []
        cache.set(key, found, KEPT_SECONDS)
    return found
