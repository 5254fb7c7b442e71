"""Every route under /api/v1/, read from the URL patterns themselves: one that is added later is refused to strangers too."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern
from django.utils import timezone

from config.api import api_urlpatterns, router
from fleet.teams.models import Scope

# A plan is asked for with POST, because it may hold a whole config.json, and changes nothing.
ONLY_ASKS = {("/api/v1/plan/", "post")}
# What the API can do is open to everybody; it says nothing of any team.
OPEN = {"schema/", "docs/"}
SINGLE = [pattern for pattern in api_urlpatterns if isinstance(pattern, URLPattern)]
PATTERNS = {str(pattern.pattern): pattern for pattern in SINGLE} | {
    str(pattern.pattern).lstrip("^").rstrip("$"): pattern for pattern in router.urls
}
ADDRESSES = sorted(f"/api/v1/{_address}" for _address in PATTERNS if _address not in OPEN)
EVERY_ROUTE = [
    address.split("(?P<")[0].replace("<slug:kind>", "thermal").replace("<int:pk>", "1")
    + ("1/" if "(?P<" in address else "")
    for address in ADDRESSES
]


def test_the_walk_has_found_the_routes():
    actions = sum(len(view.get_extra_actions()) for _, view, _ in router.registry)
    assert len(ADDRESSES) == 2 * len(router.registry) + actions + 25
    assert set(OPEN) < set(PATTERNS)


def test_strangers_and_dead_tokens_are_refused(acme, client, as_token, apart):
    past = timezone.now() - timedelta(seconds=1)
    callers = [client, as_token(acme, Scope.ADMIN, expires_at=past), as_token(acme, Scope.ADMIN, revoked_at=past)]
    for address in EVERY_ROUTE:
        with apart(address):
            assert [caller.get(address).status_code for caller in callers] == [401, 401, 401]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nobody_below_operator_writes(acme, vera, as_user, as_token, apart, method):
    callers = (as_user(vera), as_token(acme, Scope.READ))
    for address in EVERY_ROUTE:
        with apart(address):
            expected = 200 if (address, method) in ONLY_ASKS else 403
            for caller in callers:
                answer = getattr(caller, method)(address, {}, content_type="application/json")
                assert answer.status_code == expected


def test_the_root_leads_to_every_list(fleet, alice, as_user):
    client = as_user(alice)
    links = client.get("/api/v1/").json()
    assert set(links) == {prefix for prefix, _, _ in router.registry} | {
        *(
            "me",
            "samples/gpus",
            "samples/hosts",
            "samples/serving",
            "usage",
            "alert-rules",
            "alert-escalation",
            "answer-times",
            "cleanup",
            "anomaly-rules",
            "costs",
            "costs/observations",
            "costs/export",
            "costs/forecast",
            "metrics",
            "plan",
            "schema",
            "docs",
        ),
    }
    asked = {name: client.get(link).status_code for name, link in links.items() if "samples" not in name}
    assert asked.pop("plan") == 405
    assert set(asked.values()) == {200}


def test_get_changes_nothing(fleet, alice, as_user, apart):
    client = as_user(alice)
    for address in EVERY_ROUTE:
        with apart(address):
            with CaptureQueriesContext(connection) as queries:
                client.get(address)
            reads = ("SELECT", "SAVEPOINT", "RELEASE", "WITH split AS")
            assert [query["sql"] for query in queries if not query["sql"].lstrip("(\n").startswith(reads)] == []
