"""Who did something, for a reader: people are called as they are; what acts for nobody in person is described in the reader's language.

The record keeps one plain text for programs, whatever language was spoken then.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

LINK = "link sent to "
# By how such a text begins. Names of people have no spaces.
DESCRIBED: Mapping[str, str | Promise] = {
    LINK: _("link sent to %(name)s"),
    "token ": _("token %(name)s"),
}


def actor_text(label: str) -> str:
    for begins, words in DESCRIBED.items():
        if label.startswith(begins):
            return str(words) % {"name": label.removeprefix(begins)}
    return label
