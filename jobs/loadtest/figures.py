"""A stage's requests as figures. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from jobs.loadtest.sample import Sample

RANKS = (50, 95, 99)
# Of a third of a stage's requests: fewer have no median worth the name.
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds; None: nothing was measured."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class StageFigures:
    """`level`: as in LoadPlan. Rates are of what was answered within the stage, a request that reaches beyond it by its share.

    `not_sent`: requests of an open stage for which as many as may be were under way already. `at_once`: in the mean, by Little's law.
    `grown`: the median time of the last third of requests over that of the third before: above 1 where a queue builds up.
    `lag_seconds`: how late the tester's own clock rang, p95: what is above some 20 ms is not the server's doing.
    """

    level: float
    seconds: float
    answered: int
    failed: int
    not_sent: int
    requests_per_second: float
    tokens_per_second: float
    at_once: float
    ttft: Percentiles
    tpot: Percentiles
    e2e: Percentiles
    errors: dict[str, int] = field(default_factory=dict)
    grown: float | None = None
    lag_seconds: float | None = None

    @property
    def failed_share(self) -> float:
        asked = self.answered + self.failed + self.not_sent
        return (self.failed + self.not_sent) / asked if asked else 0.0


def percentile(values: Sequence[float], rank: float) -> float | None:
    """The smallest value that `rank` of 100 do not exceed (nearest rank): one that was measured. None of nothing."""
    if not values:
        return None
    return sorted(values)[max(ceil(rank / 100 * len(values)), 1) - 1]


def percentiles(values: Iterable[float | None]) -> Percentiles:
    known = [value for value in values if value is not None]
    return Percentiles(*(percentile(known, rank) for rank in RANKS))


def figures_of(
    samples: Sequence[Sample],
    *,
    level: float,
    begin: float,
    end: float,
    not_sent: int = 0,
    lags: Sequence[float] = (),
) -> StageFigures:
    """`begin`: when the stage was at its level; requests that began before count into rates by their share only, unless there are no others."""
    answered = [sample for sample in samples if not sample.error]
    settled = [sample for sample in answered if sample.began >= begin] or answered
    shares = [(sample, _share(sample, begin, end)) for sample in answered]
    seconds = max(end - begin, 1e-9)
    return StageFigures(
        level=level,
        seconds=end - begin,
        answered=len(answered),
        failed=len(samples) - len(answered),
        not_sent=not_sent,
        requests_per_second=sum(share for _sample, share in shares) / seconds,
        tokens_per_second=sum(sample.tokens * share for sample, share in shares) / seconds,
        at_once=sum(sample.seconds * share for sample, share in shares) / seconds,
        ttft=percentiles(sample.ttft_seconds for sample in settled),
        tpot=percentiles(sample.tpot_seconds for sample in settled),
        e2e=percentiles(sample.seconds for sample in settled),
        errors=dict(Counter(sample.error for sample in samples if sample.error)),
        grown=grown_of(answered),
        lag_seconds=percentile(lags, 95),
    )


def grown_of(answered: Sequence[Sample]) -> float | None:
    """None where there are too few to say."""
    in_order = sorted(answered, key=lambda sample: sample.began)
    third = len(in_order) // 3
    if third < FEWEST:
        return None
    middle, last = in_order[-2 * third : -third], in_order[-third:]
    before, after = (percentile([sample.seconds for sample in part], 50) for part in (middle, last))
    return after / before if before and after else None


def _share(sample: Sample, begin: float, end: float) -> float:
    """How much of a request lies within the stage."""
    if sample.seconds <= 0:
        return 1.0 if begin <= sample.began <= end else 0.0
    return max(min(sample.ended, end) - max(sample.began, begin), 0.0) / sample.seconds
