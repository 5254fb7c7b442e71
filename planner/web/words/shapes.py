"""What is wrong with a pasted config.json, and what would do."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

SHAPES: Mapping[str, str | Promise] = {
    "shape.too_long": _("This is longer than %(most)s characters: paste the model's config.json only."),
    "shape.not_json": _(
        "This is no JSON from line %(line)s, column %(column)s on: paste the whole file, from { to the last }."
    ),
    "shape.unreadable": _("This JSON is nested too deeply or holds a number too long to read."),
    "shape.no_object": _("This is JSON but no object: a config.json starts with {."),
    "shape.unknown_architecture": _(
        "model_type %(value)s is not an architecture that the planner knows (%(known)s). Type the shape instead."
    ),
    "shape.missing": _("%(field)s is missing: add it, or type the shape instead."),
    "shape.not_object": _("%(field)s is %(value)s: it has to be an object."),
    "shape.not_number": _("%(field)s is %(value)s: it has to be a number, without quotes."),
    "shape.not_whole": _("%(field)s is %(value)s: it has to be a whole number."),
    "shape.not_flag": _("%(field)s is %(value)s: it has to be true or false."),
    "shape.out_of_range": _("%(field)s is %(value)s: it has to lie between %(least)s and %(most)s."),
    "shape.not_divisible": _(
        "%(field)s %(value)s cannot be divided by %(by)s %(by_value)s: correct one of them, or add head_dim."
    ),
    "shape.no_divisor": _("%(field)s %(value)s does not divide %(of)s %(of_value)s: correct one of them."),
}
