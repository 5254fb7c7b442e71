"""Template tags of every page; a builtin, so templates need no {% load %}."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from fleet.panels import Panel

register = template.Library()


@register.simple_tag(takes_context=True)
def team_url(context: template.Context, name: str, *args: Any) -> str:
    """Address of a page of the team that this page belongs to."""
    return reverse(name, args=[context["request"].team.slug, *args])


@register.simple_tag(takes_context=True)
def draw(context: template.Context, panel: Panel, *args: Any) -> str:
    """A registered panel, or nothing when it has nothing to show."""
    request = context["request"]
    filled = panel.context(request, *args)
    return "" if filled is None else render_to_string(panel.template, filled, request)


@register.simple_tag
def icon(name: str) -> SafeString:
    """A 20 px line icon of static/img/icons.svg; decorative, the label stands beside it."""
    return format_html(
        '<svg class="i" viewBox="0 0 20 20" aria-hidden="true"><use href="{}#{}"/></svg>', static("img/icons.svg"), name
    )
