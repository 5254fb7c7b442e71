"""What the planner says has words for people."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from planner.catalogue.symptoms import symptoms
from planner.choice.advice import STEPS, Step, StepKey, ladder
from planner.guide import guide
from planner.web.words import SENTENCES

AREAS = ("compatibility", "symptom", "launch", "shape", "engine", "method", "change", "unsuitable", "host", "owning")
KEY = re.compile(rf"(?:{'|'.join(AREAS)})(\.[a-z0-9_-]+)+")


def keys_in(folder: Path) -> Iterator[str]:
    """Every text in the sources that is a key of these areas."""
    for path in folder.rglob("*.py"):
        if "web" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEY.fullmatch(node.value):
                    yield node.value


def test_every_key_has_words_and_every_sentence_is_said() -> None:
    said = set(keys_in(Path("planner"))) | {
        f"symptom.{name}.{part}" for name in symptoms() for part in ("cause", "fix")
    }
    worded = {key for key in SENTENCES if key.split(".")[0] in AREAS}
    assert said == worded


def test_reasons_that_are_put_together_have_words() -> None:
    steps = {said.why.key for chosen in STEPS for said in _ladders(chosen)}
    guides = {
        item.key
        for method in ("lora", "full")
        for step in guide(method=method, samples=1, epochs=99, quantized_for_serving=True)
        for item in step.items
    }
    assert (steps | guides) <= set(SENTENCES)
    for switch in ("lora", "qlora", "optimizer_8bit", "chunked_logits", "flash", "half_sequence"):
        assert {f"whatif.{switch}.cards", f"whatif.{switch}.hours"} <= set(SENTENCES)
    for switch in ("fp8_weights", "int4_weights", "fp8_cache"):
        assert f"whatif.{switch}.cards" in SENTENCES


def _ladders(chosen: StepKey) -> Iterator[Step]:
    yield from ladder(chosen=chosen, feasible=[], smaller_would_do=None)
    yield from ladder(chosen=chosen, feasible=STEPS, smaller_would_do="single")
