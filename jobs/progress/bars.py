"""Progress bars of tqdm, which most trainers show: "12%|█▏ | 120/1000 [02:03<15:04, 1.03s/it, loss=1.2]". Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from jobs.progress.numbers import NUMBER, number
from jobs.progress.pairs import read_pairs
from jobs.progress.point import Point

_BAR = re.compile(
    r"\|\s*(?P<done>\d+)/(?P<of>\d+)\s*\[(?P<spent>[\d:]+)<(?P<left>[\d:?]+),\s*(?P<rate>[^\],]+?)(?:,\s*(?P<more>[^\]]*))?\]"
)
_PER_STEP = re.compile(rf"({NUMBER})\s*s/(?:it|step|ba|batch)\b")
_PER_SECOND = re.compile(rf"({NUMBER})\s*(?:it|step|ba|batch)(?:es|s)?/s\b")
# What is loaded, mapped or downloaded has bars too, and is no step of training.
_OTHER_WORK = re.compile(
    r"\b(download|loading|fetching|map\b|map \(|tokeniz|generating|saving|shard|checkpoint|filter|packing|evaluat|validat|preprocess|files|capturing|compil|warm)",
    re.IGNORECASE,
)


def read_bar(line: str) -> Point | None:
    """None for a line without a bar of training."""
    found = _BAR.search(line)
    if found is None or _OTHER_WORK.search(line[: found.start()]):
        return None
    point = read_pairs(found["more"] or "") or Point()
    return replace(
        point,
        step=int(found["done"]) if point.step is None else point.step,
        steps=int(found["of"]) if point.steps is None else point.steps,
        seconds_per_step=_seconds(found["rate"]) if point.seconds_per_step is None else point.seconds_per_step,
    )


def _seconds(rate: str) -> float | None:
    if (found := _PER_STEP.search(rate)) is not None:
        return number(found[1])
    found = _PER_SECOND.search(rate)
    per_second = number(found[1]) if found else None
    return 1 / per_second if per_second else None
