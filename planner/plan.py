"""A plan: from what somebody wants to what to rent, how to split it, what it takes and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from planner.catalogue.gpus import GIB, Gpu, gpus
from planner.catalogue.links import nvlink_domain
from planner.choice.advice import STEPS, EngineAdvice, Step, StepKey, engine_advice, ladder, method_advice
from planner.choice.hosts import serving_host, training_host
from planner.choice.rank import best_per_gpu, rank_serving, rank_training
from planner.choice.serving import ServingOption, ServingSearch
from planner.choice.suitability import adapt
from planner.choice.training import TrainingOption, TrainingSearch
from planner.choice.whatif import serving_what_ifs, training_what_ifs
from planner.guide import Step as GuideStep
from planner.guide import guide
from planner.host import Need
from planner.reasons import Reason, reason
from planner.runs import Offload
from planner.wishes import Market, ServingWish, TrainingWish

# Numbers of the chosen GPU whose layouts are all listed: from the fewest that fit, each twice the one before.
COUNTS_SHOWN = 4
# Slow, and so tried only where a run fits on no number of these GPUs without it.
OFFLOADS: tuple[Offload, ...] = ("none", "optimizer", "all")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What somebody picked in the table; None leaves it to the ranking."""

    gpu_id: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A GPU on which the run cannot be done."""

    gpu: Gpu
    why: Reason


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """`by_gpu`: the best option of each GPU, best first. `layouts`: every option on the chosen GPU. `best` is None where nothing fits."""

    wish: TrainingWish
    market: Market
    best: TrainingOption | None
    by_gpu: Sequence[TrainingOption]
    layouts: Sequence[TrainingOption]
    left_out: Sequence[LeftOut]
    ladder: Sequence[Step]
    method: Sequence[Reason]
    what_ifs: Sequence[Reason]
    host: Sequence[Need]
    guide: Sequence[GuideStep]


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """As TrainingPlan."""

    wish: ServingWish
    market: Market
    best: ServingOption | None
    by_gpu: Sequence[ServingOption]
    layouts: Sequence[ServingOption]
    left_out: Sequence[LeftOut]
    engine: EngineAdvice
    what_ifs: Sequence[Reason]
    host: Sequence[Need]


def training_plan(wish: TrainingWish, market: Market, chosen: Chosen | None = None) -> TrainingPlan:
    """Raises KeyError for a GPU that the catalogue does not have."""
    chosen = chosen or Chosen()
    searches = _TrainingSearches(wish, market)
    found = [option for gpu in _candidates(market, chosen) for option in searches.promising(gpu)]
    ranked = best_per_gpu(rank_training(found, wish=wish, priority=market.priority))
    first = _first(ranked, chosen)
    layouts = searches.every(first.gpu) if first else []
    best = _picked(layouts, chosen) or first
    return TrainingPlan(
        wish=wish,
        market=market,
        best=best,
        by_gpu=[best if best and option.gpu is best.gpu and option.gpus == best.gpus else option for option in ranked],
        layouts=layouts,
        left_out=searches.left_out,
        ladder=_ladder(best, layouts) if best else (),
        method=method_advice(wish),
        what_ifs=list(training_what_ifs(best, searches.by_gpu[best.gpu.id])) if best else (),
        host=training_host(best, wish) if best else (),
        guide=guide(method=wish.method, samples=wish.samples, epochs=wish.epochs),
    )


def serving_plan(wish: ServingWish, market: Market, chosen: Chosen | None = None) -> ServingPlan:
    """Raises KeyError for a GPU that the catalogue does not have."""
    chosen = chosen or Chosen()
    left_out: list[LeftOut] = []
    by_gpu: dict[str, list[ServingOption]] = {}
    for gpu in _candidates(market, chosen):
        adapted = adapt(wish, gpu)
        options = [] if isinstance(adapted, Reason) else list(ServingSearch(adapted, market).options(gpu))
        if options:
            by_gpu[gpu.id] = rank_serving(options, priority=market.priority)
        else:
            why = adapted if isinstance(adapted, Reason) else _no_room(adapted, market, gpu)
            left_out.append(LeftOut(gpu, why))
    ranked = rank_serving((options[0] for options in by_gpu.values()), priority=market.priority)
    first = _first(ranked, chosen)
    layouts = by_gpu[first.gpu.id] if first else []
    best = _picked(layouts, chosen) or first
    return ServingPlan(
        wish=wish,
        market=market,
        best=best,
        by_gpu=ranked,
        layouts=layouts,
        left_out=left_out,
        engine=engine_advice(wish),
        what_ifs=list(serving_what_ifs(best, ServingSearch(wish, market))) if best else (),
        host=serving_host(best, wish) if best else (),
    )


def _no_room(wish: ServingWish, market: Market, gpu: Gpu) -> Reason:
    """Not for one request, or not for so many on so many cards."""
    if any(ServingSearch(replace(wish, concurrency=1), market).options(gpu)):
        return reason("unsuitable.load", gpu=gpu.name, most=market.most_gpus)
    return reason("unsuitable.cache", gpu=gpu.name)


def _candidates(market: Market, chosen: Chosen) -> Iterator[Gpu]:
    known: Mapping[str, Gpu] = gpus()
    wanted = dict.fromkeys([*(market.gpu_ids or known), *([chosen.gpu_id] if chosen.gpu_id else [])])
    return (known[each] for each in wanted)


@dataclass(slots=True)
class _TrainingSearches:
    """One search for each variant of the wish: GPUs that take it the same way share its estimates."""

    wish: TrainingWish
    market: Market
    by_gpu: dict[str, TrainingSearch] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    _by_wish: dict[TrainingWish, TrainingSearch] = field(default_factory=dict)

    def promising(self, gpu: Gpu) -> list[TrainingOption]:
        adapted = adapt(self.wish, gpu)
        if isinstance(adapted, Reason):
            self.left_out.append(LeftOut(gpu, adapted))
            return []
        for offload in OFFLOADS:
            search = self._search(replace(adapted, offload=offload))
            if options := list(search.promising(gpu)):
                self.by_gpu[gpu.id] = search
                return options
        self.left_out.append(LeftOut(gpu, _too_small(self._search(adapted), gpu)))
        return []

    def _search(self, wish: TrainingWish) -> TrainingSearch:
        return self._by_wish.setdefault(wish, TrainingSearch(wish, self.market))

    def every(self, gpu: Gpu) -> list[TrainingOption]:
        search = self.by_gpu[gpu.id]
        counts = [count for count in search.counts() if search.feasible(gpu, count)][:COUNTS_SHOWN]
        options = [option for count in counts for option in search.options(gpu, count)]
        return rank_training(options, wish=self.wish, priority=self.market.priority)


def _too_small(search: TrainingSearch, gpu: Gpu) -> Reason:
    layouts = [layout for count in search.counts() for layout in search.layouts(count, nvlink_domain(gpu))]
    if not layouts:
        return reason("unsuitable.no_layout", gpu=gpu.name)
    least = min(search.least(layout) for layout in layouts)
    return reason(
        "unsuitable.memory",
        gpu=gpu.name,
        needed_gib=round(least / GIB, 1),
        gib=round(gpu.memory_bytes / GIB, 1),
        most=search.market.most_gpus,
    )


Option = TypeVar("Option", TrainingOption, ServingOption)


def _first(ranked: Sequence[Option], chosen: Chosen) -> Option | None:
    return next((option for option in ranked if chosen.gpu_id in {None, option.gpu.id}), None)


def _picked(layouts: Sequence[Option], chosen: Chosen) -> Option | None:
    return next((option for option in layouts if chosen.count in {None, option.gpus}), None)


def _ladder(best: TrainingOption, layouts: Sequence[TrainingOption]) -> Sequence[Step]:
    steps: list[StepKey] = [option.step for option in layouts]
    if "batch" in steps:
        steps.append("single")
    return ladder(chosen=best.step, feasible=steps, smaller_would_do=min(steps, key=STEPS.index, default=None))
