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
    "shape.unknown_part": _("“%(value)s” is no part of a shape. Write name=value with commas between, of %(known)s."),
    "shape.bad_name": _("%(field)s may hold letters, digits, spaces, dots, dashes and underscores, 80 at most."),
    "shape.not_one_of": _("%(field)s is %(value)s: it has to be one of %(known)s."),
    "shape.not_group": _(
        "%(field)s is %(value)s: it has to be whole numbers as in %(form)s, the first %(least)s of them at least."
    ),
    "shape.bad_experts": _(
        "%(field)s is %(value)s: of the experts at least one and at most all are active, and each has an intermediate size."
    ),
    "shape.bad_latent": _("%(field)s is %(value)s: only the first number, the query's rank, may be 0."),
    "shape.bad_sliding": _("%(field)s is %(value)s: the window has to be 1 token or more."),
}
