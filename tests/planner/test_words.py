"""What the planner says has words for people."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from planner.catalogue.symptoms import symptoms
from planner.web.words import SENTENCES

AREAS = ("compatibility", "symptom", "launch", "shape")
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
