"""The answer to a plan: one tree of plain values, which the API and the command give out and the page draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.choice.advice import EngineAdvice, Step
from planner.guide import Step as GuideStep
from planner.host import Need
from planner.parameters import count_parameters
from planner.plan import LeftOut, ServingPlan, TrainingPlan
from planner.reasons import Reason
from planner.shapes import ModelShape
from planner.web.artefacts import artefact_rows
from planner.web.asking import make_plan
from planner.web.breakdown import memory_breakdown, time_breakdown
from planner.web.options import Row, option_row, option_rows
from planner.web.query import query_of
from planner.web.rentorbuy import owning_row
from planner.web.stack import software_row
from planner.web.words import SENTENCES, sentence
from planner.web.words.terms import NEED_VALUES, NEEDS, STEPS, VERDICTS


def answer(given: Mapping[str, Any]) -> Row:
    """`given`: validated data of PlanInput. Sentences in the language of the thread."""
    plan = make_plan(given)
    return {
        "work": given["work"],
        "query": query_of(given),
        "model": _model(plan.wish.shape),
        "best": option_row(plan.best) if plan.best else None,
        "by_gpu": option_rows(plan.by_gpu),
        "layouts": option_rows(plan.layouts),
        "left_out": [_left_out(each) for each in plan.left_out],
        "what_ifs": _sentences(plan.what_ifs),
        "host": [_need(need) for need in plan.host],
        **_of_best(plan, given),
        **_of_kind(plan),
    }


def _of_best(plan: TrainingPlan | ServingPlan, given: Mapping[str, Any]) -> Row:
    """What can only be said of a chosen option; nulls where nothing fits."""
    if plan.best is None:
        return dict.fromkeys(("memory", "times", "software", "artefacts", "owning"))
    return {
        "memory": memory_breakdown(plan.best),
        "times": time_breakdown(plan.best),
        "software": software_row(plan.best, given["driver"]),
        "artefacts": artefact_rows(plan.best, given),
        "owning": owning_row(plan.best, given),
    }


def _of_kind(plan: TrainingPlan | ServingPlan) -> Row:
    if isinstance(plan, TrainingPlan):
        return {
            "ladder": [_step(step) for step in plan.ladder],
            "method": _sentences(plan.method),
            "engine": None,
            "guide": [_guide_step(step) for step in plan.guide],
        }
    return {"ladder": [], "method": [], "engine": _engine(plan.engine), "guide": []}


def _sentences(said: Iterable[Reason]) -> list[str]:
    return [sentence(each) for each in said]


def _model(shape: ModelShape) -> Row:
    counts = count_parameters(shape)
    return {
        "name": shape.name,
        "parameters": counts.total,
        "active_parameters": round(counts.active),
        "layers": shape.layers,
        "hidden": shape.hidden,
        "max_positions": shape.max_positions or None,
        "source": shape.source or None,
    }


def _left_out(each: LeftOut) -> Row:
    return {"gpu": each.gpu.id, "gpu_name": each.gpu.name, "why": sentence(each.why)}


def _need(need: Need) -> Row:
    """Amounts in `unit`; of "word" the words."""
    return {
        "key": need.key,
        "name": str(NEEDS[need.key]),
        "unit": need.unit,
        "minimum": _amount(need.minimum),
        "recommended": _amount(need.recommended),
        "why": sentence(need.why),
    }


def _amount(value: float | str) -> float | str:
    return str(NEED_VALUES[value]) if isinstance(value, str) else float(value)


def _step(step: Step) -> Row:
    return {
        "key": step.key,
        "name": str(STEPS[step.key]),
        "verdict": step.verdict,
        "verdict_words": str(VERDICTS[step.verdict]),
        "why": sentence(step.why),
        "changes": _sentences(step.changes),
    }


def _engine(advice: EngineAdvice) -> Row:
    return {"engine": advice.engine, "reasons": _sentences(advice.reasons)}


def _guide_step(step: GuideStep) -> Row:
    return {"key": step.key, "name": str(SENTENCES[step.key]), "items": _sentences(step.items)}
