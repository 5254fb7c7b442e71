"""What the chosen option's memory and time are made of, term by term, with words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.estimates import Counter, MemoryEstimate
from planner.speed.terms import TimeTerm
from planner.web.options import Row, span
from planner.web.words.terms import memory_word, time_word

COUNTERS: tuple[Counter, ...] = ("allocated", "reserved", "device")


def memory_breakdown(option: TrainingOption | ServingOption) -> Row:
    """Bytes of the fullest GPU. `card_bytes` is what the driver shows, not what the label says."""
    estimate = option.memory if isinstance(option, TrainingOption) else option.memory.estimate
    gpu = option.gpu
    return {
        "card_bytes": gpu.memory_bytes,
        "card_is_measured": gpu.memory_is_measured,
        "label_gib": gpu.label_gib,
        "totals": {counter: _total(estimate, counter) for counter in COUNTERS},
        "terms": list(_memory_terms(estimate)),
    }


def _total(estimate: MemoryEstimate, counter: Counter) -> Row:
    return span(estimate.low(counter), estimate.expected(counter), estimate.high(counter))


def _memory_terms(estimate: MemoryEstimate) -> Iterator[Row]:
    """Terms of nothing are left out."""
    for term in estimate.terms:
        if term.expected or term.high:
            yield {
                "key": term.key,
                "name": memory_word(term.key),
                "bytes": span(term.low, term.expected, term.high),
                "counter": term.counter,
                "formula": term.formula,
                "source": term.source,
            }


def time_breakdown(option: TrainingOption | ServingOption) -> list[Row]:
    """One part for each thing that is timed: a step and the whole run, or the first token and each further one."""
    if isinstance(option, TrainingOption):
        return [_part("step", option.speed.step.terms), _part("run", option.whole.time.terms)]
    return [_part("first_token", option.speed.first_token.terms), _part("token", option.speed.token.terms)]


def _part(key: str, terms: Iterable[TimeTerm]) -> Row:
    rows: list[dict[str, Any]] = [
        {
            "key": term.key,
            "name": time_word(term.key),
            "seconds": span(term.low, term.expected, term.high),
            "hidden_seconds": term.hidden,
            "formula": term.formula,
            "source": term.source,
        }
        for term in terms
        if term.high or term.hidden
    ]
    return {"key": key, "terms": rows}
