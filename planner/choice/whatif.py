"""What would change the answer: how much memory is missing to save a card, and which single switch makes the run smaller or cheaper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.catalogue.links import nvlink_domain
from planner.choice.serving import ServingOption, ServingSearch
from planner.choice.suitability import adapt
from planner.choice.training import TrainingOption, TrainingSearch
from planner.reasons import Reason, reason
from planner.runs import Lora
from planner.wishes import ServingWish, TrainingWish

# A change that saves less is not worth a sentence.
WORTH_SAVING = 0.1
# Beyond this nobody finds the memory by tidying up.
MOST_MISSING = 1.0
USUAL_LORA = Lora(16, ("q", "k", "v", "o", "gate", "up", "down"))


def training_what_ifs(best: TrainingOption, search: TrainingSearch) -> Iterator[Reason]:
    """The sentences for the option that was chosen; each switch is tried by planning again on the same GPU."""
    least = _fewest(search, best)
    if least > 1 and (missing := _missing_for(least // 2, best, search)):
        yield reason("whatif.memory", percent=round(100 * missing), cards=least - least // 2)
    if search.wish.offload == "none" and search.wish.method == "full":
        offloading = TrainingSearch(replace(search.wish, offload="optimizer"), search.market)
        if (fewest := _fewest(offloading, best)) < least:
            yield reason("whatif.offload.cards", cards=least, left=fewest)
    for key, wish in _training_switches(search.wish):
        adapted = adapt(wish, best.gpu)
        if isinstance(adapted, Reason):
            continue
        changed = TrainingSearch(adapted, search.market)
        fewest = _fewest(changed, best)
        if fewest < least:
            yield reason(f"whatif.{key}.cards", cards=least, left=fewest)
        elif (saved := _saved_time(changed, best)) >= WORTH_SAVING:
            yield reason(f"whatif.{key}.hours", percent=round(100 * saved))


def _fewest(search: TrainingSearch, best: TrainingOption) -> int:
    """Cards of the chosen kind that the run needs at least; the option's own number where fewer do not do."""
    return next((count for count in search.counts() if search.feasible(best.gpu, count)), best.gpus)


def _missing_for(count: int, best: TrainingOption, search: TrainingSearch) -> float | None:
    """The share of the card's memory by which the smallest run on `count` cards is too big; None where it is hopeless."""
    needs = [search.least(layout) for layout in search.layouts(count, nvlink_domain(best.gpu))]
    missing = min(needs, default=0.0) / best.gpu.memory_bytes - 1
    return missing if 0 < missing <= MOST_MISSING else None


def _saved_time(changed: TrainingSearch, best: TrainingOption) -> float:
    """The share of the hours that the switch saves with the same layout; 0 where that does not fit."""
    options = changed.timed(best.gpu, best.gpus, [best.run.layout])
    return max((1 - option.hours / best.hours for option in options), default=0.0)


def _training_switches(wish: TrainingWish) -> Iterator[tuple[str, TrainingWish]]:
    if wish.method == "full":
        yield "lora", replace(wish, method="lora", lora=USUAL_LORA)
    if wish.method == "lora":
        yield "qlora", replace(wish, method="qlora", weight_format="nf4-dq")
    if wish.method == "full" and wish.optimizer == "adamw":
        yield "optimizer_8bit", replace(wish, optimizer="adamw-8bit")
    if wish.logits == "full":
        yield "chunked_logits", replace(wish, logits="chunked")
    if wish.attention == "eager":
        yield "flash", replace(wish, attention="flash")
    if wish.sequence_length >= 1024:
        yield "half_sequence", replace(wish, sequence_length=wish.sequence_length // 2)


def serving_what_ifs(best: ServingOption, search: ServingSearch) -> Iterator[Reason]:
    for key, wish in _serving_switches(search.wish):
        adapted = adapt(wish, best.gpu)
        options = [] if isinstance(adapted, Reason) else list(ServingSearch(adapted, search.market).options(best.gpu))
        if not options:
            continue
        fewest = min(options, key=lambda option: (not option.meets_targets, option.gpus))
        if fewest.meets_targets >= best.meets_targets and fewest.gpus < best.gpus:
            yield reason(f"whatif.{key}.cards", cards=best.gpus - fewest.gpus, left=fewest.gpus)


def _serving_switches(wish: ServingWish) -> Iterator[tuple[str, ServingWish]]:
    if wish.weight_format in {"bf16", "fp16"}:
        yield "fp8_weights", replace(wish, weight_format="fp8")
        yield "int4_weights", replace(wish, weight_format="awq-int4")
    if wish.kv_dtype in {"bf16", "fp16"}:
        yield "fp8_cache", replace(wish, kv_dtype="fp8")
