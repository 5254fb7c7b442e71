from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse

from fleet.teams.models import Scope
from tests.api.conftest import as_token, make_token

__all__ = ["as_token", "make_token"]
JOBS = "/api/v1/jobs/"
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01", gpus=1, managed=True, ssh=PLACE)


@pytest.fixture
def script(acme, as_token):
    """A script with a token that may launch."""
    return as_token(acme, Scope.OPERATE)


@pytest.fixture
def post(script) -> Callable[..., HttpResponse]:
    """post("stop/", job, …) and post("", name=…): a write of that script."""

    def send(path: str = "", client: Any = script, headers: Any = None, **body: Any) -> HttpResponse:
        answer: HttpResponse = client.post(JOBS + path, body, content_type="application/json", headers=headers or {})
        return answer

    return send
