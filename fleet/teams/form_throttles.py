"""How often one address may send a form. The API has its own throttles, from the same library."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import ceil
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from fleet.teams.addresses import client_ip
from fleet.teams.throttles import OpenWithoutCache

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class FormThrottle(OpenWithoutCache):
    """Counts by form and address, so that one neighbour does not shut out the others."""

    def __init__(self, form: str, rate: str) -> None:
        self.form, self.rate = form, rate
        super().__init__()

    def get_cache_key(self, request: HttpRequest, view: object) -> str:
        return f"form.{self.form}.{client_ip(request)}"


def throttled(form: str, rate: str) -> Callable[[View], View]:
    """A view whose POSTs are refused with 429 above `rate` ("20/min") from one address."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            throttle = FormThrottle(form, rate)
            if request.method == "POST" and not throttle.allow_request(request, view):  # type: ignore[arg-type]
                return slow_down(request, throttle.wait())
            return view(request, *args, **kwargs)

        return guarded  # type: ignore[return-value]

    return decorate


def slow_down(request: HttpRequest, wait_seconds: float | None) -> HttpResponseBase:
    # None where the count was taken back meanwhile.
    seconds = ceil(wait_seconds or 1)
    response = render(request, "429.html", {"seconds": seconds}, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response
