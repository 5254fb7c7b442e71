"""The sentences behind the planner's reasons, one file for each part of a plan."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise

from planner.reasons import Reason
from planner.web.words.choice import ADVICE
from planner.web.words.compatibility import COMPATIBILITY
from planner.web.words.guide import GUIDE
from planner.web.words.host import HOST
from planner.web.words.launchers import LAUNCHERS
from planner.web.words.shapes import SHAPES
from planner.web.words.symptoms import SYMPTOMS

SENTENCES: Mapping[str, str | Promise] = {**ADVICE, **COMPATIBILITY, **GUIDE, **HOST, **LAUNCHERS, **SHAPES, **SYMPTOMS}


def sentence(said: Reason) -> str:
    """In the language of the thread. Raises KeyError for a reason without words, or without a value that they name."""
    return str(SENTENCES[said.key]) % said.values
