"""How environments are told to people."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from planner.web.words.terms import LEVELS

Words = Mapping[str, str | Promise]

UNKNOWN = "unknown"
VERDICTS: Words = {**LEVELS, UNKNOWN: pgettext_lazy("verdict", "not known")}
# Marks of STYLE.md for severities; a verdict that is good has none.
MARKS = {"refused": "urgent", "ptx-risk": "warning", UNKNOWN: "note"}
KINDS: Words = {
    "typed": pgettext_lazy("source", "typed"),
    "reported": pgettext_lazy("source", "reported"),
    "carried": pgettext_lazy("source", "saved with the image"),
    "build": pgettext_lazy("source", "of the build"),
}
LABELS: Words = {"driver": _("Driver"), "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL", "python": "Python"}
ORIGINS: Words = {
    "own": pgettext_lazy("image", "yours"),
    "provider": pgettext_lazy("image", "provider's"),
    "template": pgettext_lazy("image", "template"),
}


def label(name: str) -> str:
    """Packages are called by their names."""
    return str(LABELS.get(name, name))


def verdict_word(level: str) -> str:
    return str(VERDICTS[level])


def source_words(kind: str, who: str) -> str:
    """“typed, bob”, “reported, train-01”."""
    word = str(KINDS[kind])
    return gettext("%(source)s, %(who)s") % {"source": word, "who": who} if who else word
