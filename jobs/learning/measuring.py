"""What an attempt came to: memory from its machines' telemetry, speed from what it told, hours and money from its own times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from django.db.models import Q

from fleet.inventory.models import GPU
from fleet.telemetry.series import gpu_series
from jobs.book.models import Attempt, JobState, Node
from jobs.diagnosis.evidence import Evidence, Kind
from jobs.learning.measures import Measure, Missing, Reading, number
from jobs.metrics.models import JobPoint
from jobs.progress.point import Point
from jobs.spending.cost import cost_of

# The highest of each is the highest of all; few, so that a slow exporter fills them.
READINGS, POINTS = 60, 20_000
SHORTEST = timedelta(minutes=1)
# With less of the time seen, the peak may lie in what was not.
SEEN = 0.5
# The first of them warm up: compilers, caches, the first read of the data.
WARM_UP, LEAST_STEPS = 0.1, 5
# A run of another length took other hours, and its step time says what there is to say.
SAME_LENGTH = Decimal("0.02")
FIELDS = ("step", "steps", "seconds_per_step", "tokens_per_second", "tokens_per_gpu", "memory_bytes")


def measured_of(attempt: Attempt, *, now: datetime) -> dict[Measure, Reading]:
    """By measure, in its order. Raises StoreError where readings cannot be read."""
    if attempt.started_at is None:
        return {measure: Reading(missing=Missing.NOT_RUN) for measure in Measure}
    rows = JobPoint.objects.filter(attempt=attempt).order_by("at", "pk").values("at", *FIELDS)[:POINTS]
    points = list(rows)
    predicted = attempt.job.predicted
    found = {
        Measure.MEMORY: memory_of(attempt, points, now),
        Measure.STEP: step_of(attempt, points),
        Measure.TOKENS: tokens_of(attempt, points, predicted),
        Measure.HOURS: hours_of(attempt, points),
        **money_of(attempt, points, now),
    }
    return shared(found) if is_shared(attempt, now) else found


def shared(readings: Mapping[Measure, Reading]) -> dict[Measure, Reading]:
    """Of a machine with another job on it: what was measured is both's."""
    return {
        measure: Reading(
            reading.value, reading.missing or (Missing.SHARED if reading.value is not None else reading.missing)
        )
        for measure, reading in readings.items()
    }


def is_shared(attempt: Attempt, now: datetime) -> bool:
    machines = attempt.nodes.values_list("instance_id", flat=True)
    others = Node.objects.filter(instance__in=list(machines)).exclude(attempt=attempt)
    there = Q(attempt__ended_at=None) | Q(attempt__ended_at__gt=attempt.started_at)
    return others.filter(there, attempt__started_at__lt=attempt.ended_at or now).exists()


def memory_of(attempt: Attempt, points: Sequence[Mapping[str, Any]], now: datetime) -> Reading:
    """The peak of the fullest GPU, as its driver shows it; else what the run told of its allocator, which lacks what CUDA itself takes."""
    assert attempt.started_at is not None
    until = max(attempt.ended_at or now, attempt.started_at + SHORTEST)
    gpus = GPU.objects.filter(Q(removed_at=None) | Q(removed_at__gt=attempt.started_at))
    ids = list(gpus.filter(instance__job_nodes__attempt=attempt).values_list("pk", flat=True))
    told = max((row["memory_bytes"] for row in points if row["memory_bytes"]), default=None)
    if ids:
        measured = gpu_series(
            gpu_ids=ids,
            fields=["memory_used_bytes"],
            since=attempt.started_at,
            until=until,
            max_points=READINGS,
            statistic="max",
        )
        series = [figures["memory_used_bytes"] for figures in measured.values.values()]
        seen = max((sum(one is not None for one in figures) / len(figures) for figures in series), default=0.0)
        peak = max((one for figures in series for one in figures if one is not None), default=None)
        if peak is not None:
            return Reading(number(peak), Missing.NOTHING if seen >= SEEN else Missing.GAPS)
    return Reading(number(told), Missing.NOTHING if told else Missing.NOT_MEASURED)


def step_of(attempt: Attempt, points: Sequence[Mapping[str, Any]]) -> Reading:
    placed = tuple(
        (row["at"].timestamp(), Point(step=row["step"], seconds_per_step=row["seconds_per_step"])) for row in points
    )
    return middle(Evidence(Kind(attempt.job.kind), points=placed).steps.values)


def middle(values: Sequence[float]) -> Reading:
    """The median without the warm-up."""
    known = [value for value in values if number(value) is not None and value > 0]
    if not known:
        return Reading(missing=Missing.NOT_TOLD)
    steady = known[int(len(known) * WARM_UP) :]
    return Reading(number(median(steady)), Missing.NOTHING if len(known) >= LEAST_STEPS else Missing.TOO_SHORT)


def tokens_of(attempt: Attempt, points: Sequence[Mapping[str, Any]], predicted: Mapping[str, Any]) -> Reading:
    """As the run says it, else by its step time and the tokens that a step was planned to have."""
    told = [row["tokens_per_second"] for row in points if row["tokens_per_second"] is not None]
    if not told and (gpus := number(predicted.get("gpus"))):
        told = [row["tokens_per_gpu"] * float(gpus) for row in points if row["tokens_per_gpu"] is not None]
    if told:
        return middle(told)
    step, tokens = step_of(attempt, points), tokens_of_a_step(predicted)
    if step.value and tokens:
        return Reading(number(tokens / step.value), step.missing)
    return Reading(missing=Missing.NOT_TOLD)


def tokens_of_a_step(predicted: Mapping[str, Any]) -> Decimal | None:
    settings = predicted.get("settings", {})
    batch, length = number(settings.get("global_batch")), number(settings.get("sequence_length"))
    return batch * length if batch and length else None


def hours_of(attempt: Attempt, points: Sequence[Mapping[str, Any]]) -> Reading:
    if attempt.started_at is None or attempt.ended_at is None:
        return Reading(missing=Missing.RUNS_YET)
    hours = Decimal((attempt.ended_at - attempt.started_at) // timedelta(seconds=1)) / 3600
    return Reading(number(hours), _whole(attempt, points))


def _whole(attempt: Attempt, points: Sequence[Mapping[str, Any]]) -> Missing:
    """Whether it was the run that was planned: ended well, from its first step to its last."""
    if attempt.ended_at is None:
        return Missing.RUNS_YET
    if attempt.state != JobState.SUCCEEDED:
        return Missing.NOT_FINISHED
    steps = [row["step"] for row in points if row["step"] is not None]
    planned = number(attempt.job.predicted.get("steps"))
    if not steps or not planned:
        return Missing.NOTHING
    # What a later attempt begins with was done by the one before.
    done = max(steps) - (min(steps) if attempt.number > 1 else 0)
    return Missing.NOTHING if abs(done / planned - 1) <= SAME_LENGTH else Missing.OTHER_LENGTH


def money_of(attempt: Attempt, points: Sequence[Mapping[str, Any]], now: datetime) -> dict[Measure, Reading]:
    wanted = str(attempt.job.predicted.get("currency") or "")
    cost = cost_of(attempt, now, into=wanted)
    lacks = Missing.NOTHING
    if cost.is_floor:
        lacks = Missing.NO_PRICE if cost.unpriced_seconds else Missing.NO_RATE
    elif wanted and cost.currency != wanted:
        lacks = Missing.NO_RATE
    held = (attempt.ended_at or now) - attempt.created_at
    seconds = held // timedelta(seconds=1)
    per_hour = cost.amount * 3600 / seconds if seconds else None
    # Amounts in another currency than the plan's are no figures of this line.
    known = lacks is not Missing.NO_RATE
    return {
        Measure.COST: Reading(number(cost.amount) if known else None, lacks or _whole(attempt, points)),
        Measure.COST_PER_HOUR: Reading(number(per_hour) if known else None, lacks),
    }
