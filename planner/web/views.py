"""The planner's page: one form whose address is the plan, an answer that is swapped in while somebody types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.middleware import HtmxDetails
from rest_framework.exceptions import ValidationError

from planner.compatibility.explain import TEXT_LIMIT, explain
from planner.web.answer import answer
from planner.web.asking import Given
from planner.web.charts import chart_data
from planner.web.form import groups_of, model_names
from planner.web.inputs import PlanInput, checked_config, input_fields
from planner.web.options import Row
from planner.web.presets import preset_links
from planner.web.query import data_of, query_of
from planner.web.words import sentence

# The id of the form on the page.
FORM = "plan-form"
Errors = Mapping[str, Sequence[str]]


class PlanRequest(HttpRequest):
    htmx: HtmxDetails


@require_GET
def planner(request: PlanRequest) -> HttpResponse:
    """The page; for htmx the answer alone, or what is wrong. The address is always the shortest one of its plan."""
    data = data_of(request.GET)
    asked = PlanInput(data=data)
    good = asked.is_valid()
    query = query_of(asked.validated_data) if good else ""
    if request.htmx and not request.htmx.history_restore_request:
        response = _answered(request, asked.validated_data, query) if good else _refused(request, asked.errors)
    elif good and QueryDict(query) != request.GET:
        response = HttpResponseRedirect(f"?{query}" if query else request.path)
    else:
        response = _page(request, data, asked, query)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _page(request: HttpRequest, data: Mapping[str, Any], asked: PlanInput, query: str, **more: Any) -> HttpResponse:
    errors = {} if asked.is_valid() else asked.errors
    told = None if errors else answer(asked.validated_data)
    context = {
        "nav": "planner",
        "groups": groups_of(data, errors),
        "models": model_names(),
        "work": data.get("work", "training"),
        "presets": preset_links(query),
        "errors": _named(errors),
        **_context(told, asked.validated_data if told else {}, query),
        **more,
    }
    return render(request, "planner/page.html", context, status=400 if errors or "config_error" in more else 200)


def _answered(request: PlanRequest, given: Given, query: str) -> HttpResponse:
    context = {**_context(answer(given), given, query), "errors": {}, "is_part": True}
    response = render(request, "planner/answer.html", context)
    # Typing leaves one entry in the browser's history; a choice out of a table is one to come back from.
    header = "HX-Replace-Url" if request.htmx.trigger == FORM else "HX-Push-Url"
    response[header] = f"{request.path}?{query}" if query else request.path
    return response


def _refused(request: HttpRequest, errors: Errors) -> HttpResponse:
    """The answer before stays where it is; what is wrong stands beside its field."""
    response = render(request, "planner/errors.html", {"errors": _named(errors)})
    response["HX-Retarget"], response["HX-Reswap"] = "#plan-errors", "outerHTML"
    return response


def _context(told: Row | None, given: Given, query: str) -> dict[str, Any]:
    if told is None:
        return {"plan": None, "query": query, "charts": {}}
    base = query_of(given, gpu="", count=None)
    for row in (*told["by_gpu"], *told["layouts"]):
        row["query"] = f"{base}{'&' if base else ''}gpu={row['gpu']}&count={row['gpus']}"
    for part in told["times"] or ():
        part["total"] = sum(term["seconds"]["expected"] for term in part["terms"])
    return {"plan": told, "query": query, "charts": chart_data(told)}


def _named(errors: Errors) -> dict[str, dict[str, str]]:
    """Field -> its label and what is wrong with it."""
    fields = input_fields()
    return {
        name: {
            "label": str(fields[name].label) if name in fields else name,
            "text": " ".join(map(str, said)),
        }
        for name, said in errors.items()
    }


@require_POST
def read_config(request: HttpRequest) -> HttpResponse:
    """A pasted or uploaded config.json becomes the shape in the plan's address, everything else of the plan stays."""
    base = _right_ones(data_of(QueryDict(request.POST.get("query", "")[:4000])))
    try:
        config = _config_of(request)
    except ValidationError as error:
        asked = PlanInput(data=base)
        asked.is_valid(raise_exception=True)
        query = query_of(asked.validated_data)
        said = " ".join(map(str, error.detail))
        return _page(
            request, base, asked, query, config_error=said, config_text=request.POST.get("config", "")[:20_000]
        )
    asked = PlanInput(data={**base, "config": config})
    asked.is_valid(raise_exception=True)
    return HttpResponseRedirect(f"../?{query_of(asked.validated_data)}")


def _right_ones(data: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that would be refused: they came from an address that somebody may have cut."""
    asked = PlanInput(data=data)
    asked.is_valid()
    return {name: value for name, value in data.items() if name not in asked.errors}


def _config_of(request: HttpRequest) -> str:
    """Raises ValidationError."""
    text = _config_text(request)
    if not text:
        raise ValidationError([_("Paste a config.json, or choose the file.")])
    return checked_config(text)


def _config_text(request: HttpRequest) -> str:
    """Bytes that are no text would be no JSON either: they are shown as what they are, and refused as that."""
    file = request.FILES.get("file")
    if file is None:
        return request.POST.get("config", "").strip()
    content: bytes = file.read(2_000_000)
    return content.decode("utf-8", "replace").strip()


@require_POST
def symptom(request: PlanRequest) -> HttpResponse:
    """A pasted error message: what it means and what to do."""
    text = request.POST.get("text", "")[:TEXT_LIMIT]
    found = [
        {"matched": each.matched, "cause": sentence(each.cause), "fix": sentence(each.fix), "layer": each.symptom.layer}
        for each in explain(text)
    ]
    context = {"nav": "planner", "text": text, "found": found, "asked": bool(text.strip())}
    return render(request, "planner/symptoms.html" if request.htmx else "planner/symptom_page.html", context)
