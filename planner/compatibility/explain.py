"""A pasted error message: what it means and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalogue.symptoms import Symptom, symptoms
from planner.reasons import Reason, Value

# A log can be long and its lines longer: beyond this the expressions would cost more than they find.
TEXT_LIMIT = 400_000
LINE_LIMIT = 4_000


@dataclass(frozen=True, slots=True)
class Explanation:
    symptom: Symptom
    matched: str
    cause: Reason
    fix: Reason


def explain(text: str) -> tuple[Explanation, ...]:
    """The symptoms in `text`, in the order of their first appearance; the first is usually the one that the others follow from."""
    shortened = "\n".join(line[:LINE_LIMIT] for line in text[:TEXT_LIMIT].splitlines())
    found = [
        (match.start(), symptom, match)
        for symptom in symptoms().values()
        if (match := symptom.pattern.search(shortened))
    ]
    found.sort(key=lambda each: each[0])
    return tuple(explanation(symptom, match[0], match.groupdict()) for _, symptom, match in found)


def explanation(symptom: Symptom, matched: str, groups: Mapping[str, str]) -> Explanation:
    values: dict[str, Value] = dict(groups)
    if symptom.id == "driver-too-old-torch":
        # The driver's API number: 12080 is CUDA 12.8.
        number = int(groups["found"])
        values["cuda"] = f"{number // 1000}.{number % 1000 // 10}"
    return Explanation(
        symptom=symptom,
        matched=matched,
        cause=Reason(f"symptom.{symptom.id}.cause", values),
        fix=Reason(f"symptom.{symptom.id}.fix", values),
    )
