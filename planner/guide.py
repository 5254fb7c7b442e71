"""Fine-tuning for a field of knowledge: how much data, how it is cleaned, how the outcome is judged. The last part of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.reasons import Reason, reason
from planner.runs import Method

# Good samples for a change of manner or format with adapters, and for new knowledge in all weights.
ADAPTER_SAMPLES = (1_000, 10_000)
FULL_SAMPLES = (20_000, 200_000)
# Part of the samples that is never trained on, and how few make a judgement.
HELD_OUT_SHARE = 0.05
FEWEST_HELD_OUT = 200
# Beyond this many times through the same samples a model repeats them instead of learning from them.
MOST_EPOCHS = {"lora": 5, "qlora": 5, "full": 3}


@dataclass(frozen=True, slots=True)
class Step:
    """`items`: what to do or to check, in order."""

    key: str
    items: tuple[Reason, ...]


def guide(
    *, method: Method, samples: int | None, epochs: float | None, quantized_for_serving: bool = False
) -> tuple[Step, ...]:
    """What to do around the run itself. `samples` and `epochs` are the plan's, None where nobody said."""
    return (
        Step("guide.data", tuple(_data(method, samples, epochs))),
        Step("guide.cleaning", _CLEANING),
        Step("guide.privacy", _PRIVACY),
        Step("guide.evaluation", tuple(_evaluation(samples, quantized_for_serving=quantized_for_serving))),
    )


def samples_for(method: Method) -> tuple[int, int]:
    return FULL_SAMPLES if method == "full" else ADAPTER_SAMPLES


def _data(method: Method, samples: int | None, epochs: float | None) -> Iterator[Reason]:
    least, good = samples_for(method)
    yield reason("guide.data.full" if method == "full" else "guide.data.adapter", least=least, good=good)
    if samples is not None and samples < least:
        yield reason(
            "guide.data.too_few.full" if method == "full" else "guide.data.too_few", samples=samples, least=least
        )
    if epochs is not None and epochs > MOST_EPOCHS[method]:
        yield reason("guide.data.epochs", epochs=epochs, most=MOST_EPOCHS[method])
    yield reason("guide.data.quality")


_CLEANING = tuple(
    reason(f"guide.cleaning.{item}")
    for item in ("duplicates", "template", "language", "length", "contradictions", "leak", "licence", "sample_by_hand")
)
_PRIVACY = tuple(
    reason(f"guide.privacy.{item}")
    for item in ("names", "numbers", "free_text", "consistent", "secrets", "check", "basis")
)


def _evaluation(samples: int | None, *, quantized_for_serving: bool) -> Iterator[Reason]:
    held_out = FEWEST_HELD_OUT if samples is None else max(FEWEST_HELD_OUT, round(samples * HELD_OUT_SHARE))
    yield reason("guide.evaluation.held_out", count=held_out)
    for item in ("terminology", "reasoning", "refusal", "general", "baseline", "people"):
        yield reason(f"guide.evaluation.{item}")
    if quantized_for_serving:
        yield reason("guide.evaluation.quantized")
