"""How templates tell parts of an environment and who said what of them."""

from __future__ import annotations

from django import template

from fleet.inventory.environments.versions import Said
from fleet.inventory.environments.words import label, source_words

register = template.Library()

register.filter("part", label)


@register.filter
def says(said: Said) -> str:
    """“reported, train-01”: plain text, escaped where it is shown."""
    return source_words(said.kind, said.who)
