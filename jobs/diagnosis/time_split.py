"""Where the time of a step goes, as trainers print it themselves: loading data, computing, exchanging gradients, the optimizer. Pure.

Shapes: DeepSpeed's wall_clock_breakdown, Megatron's timers, and "Data 0.30 (0.31)" beside "Time" as PyTorch's examples, timm, detectron and mmengine print it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from jobs.diagnosis.evidence import Line
from jobs.progress.numbers import NUMBER, number

# A few lines are warm-up; the newest say how it goes now.
LEAST, NEWEST = 3, 200
DATA_TIME = re.compile(
    rf"\b(?:data_?time|data_load(?:ing)?(?:_time)?|dataloader_time|Data)\"?\s*[:=]?\s*(?P<data>{NUMBER})\s*s?\b",
    re.IGNORECASE,
)
WHOLE_TIME = re.compile(
    rf"(?<![\w])(?:batch_time|step_time|iter_time|time|Time)\"?\s*[:=]?\s*(?P<whole>{NUMBER})\s*s?\b"
)
DEEPSPEED = re.compile(r"time \(ms\) \|(?P<parts>.*(?:fwd|forward)\w*: ?[\d.]+.*)")
DEEPSPEED_PART = re.compile(rf"(?P<name>\w+): ?(?P<ms>{NUMBER})")
MEGATRON = re.compile(rf"^\s*(?P<name>[a-z][a-z-]+) \.+: \((?P<least>{NUMBER}), (?P<most>{NUMBER})\)")
MEGATRON_WHOLE = ("forward-backward", "optimizer", "all-grads-sync", "batch-generator")


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of a step, None = it is not said. `lines`: numbers of some that say so."""

    data: float | None = None
    communication: float | None = None
    lines: tuple[int, ...] = ()


def time_split(lines: Iterable[Line]) -> Split:
    """The middle of what the newest steps say."""
    data: list[tuple[int, float]] = []
    talk: list[tuple[int, float]] = []
    timers: dict[str, float] = {}
    for line in lines:
        if (share := _data_share(line.text)) is not None:
            data.append((line.number, share))
        if (share := _deepspeed(line.text)) is not None:
            talk.append((line.number, share))
        if (timer := MEGATRON.match(line.text)) is not None:
            timers[timer["name"]] = number(timer["most"]) or 0.0
            if timer["name"] == "optimizer":
                data.extend((line.number, share) for share in _megatron(timers, "batch-generator"))
                talk.extend((line.number, share) for share in _megatron(timers, "all-grads-sync"))
                timers = {}
    numbers = tuple(place for place, _share in (*data[-3:], *talk[-3:]))
    return Split(_middle(data), _middle(talk), numbers[:5])


def _middle(shares: list[tuple[int, float]]) -> float | None:
    return median(share for _place, share in shares[-NEWEST:]) if len(shares) >= LEAST else None


def _data_share(text: str) -> float | None:
    data, whole = DATA_TIME.search(text), WHOLE_TIME.search(text)
    if data is None or whole is None or data.start() == whole.start():
        return None
    waits, takes = number(data["data"]), number(whole["whole"])
    return waits / takes if waits is not None and takes and 0 <= waits <= takes else None


def _deepspeed(text: str) -> float | None:
    """Of forward, backward and step what the exchange of gradients took; with overlap it is inside and near nothing."""
    found = DEEPSPEED.search(text)
    if found is None:
        return None
    parts = {
        one["name"].removesuffix("_microstep"): number(one["ms"]) or 0.0
        for one in DEEPSPEED_PART.finditer(found["parts"])
    }
    parts = {name.replace("forward", "fwd").replace("backward", "bwd"): ms for name, ms in parts.items()}
    whole = sum(parts.get(name, 0.0) for name in ("fwd", "bwd", "step"))
    return parts["bwd_allreduce"] / whole if whole and "bwd_allreduce" in parts else None


def _megatron(timers: dict[str, float], name: str) -> Iterator[float]:
    whole = sum(timers.get(one, 0.0) for one in MEGATRON_WHOLE)
    if name in timers and whole:
        yield timers[name] / whole
