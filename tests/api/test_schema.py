"""The schema is valid OpenAPI 3.1, complete, with examples, and what the API answers is what it says."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from fleet.teams.models import Scope
from tests.api.resources import LISTS, first_detail
from tests.fleet.costs.seeding import spend_on

USAGE = "/api/v1/usage/"
ABOUT_ALERTS = ("/api/v1/answer-times/", "/api/v1/alert-escalation/")
CLEANUP = "/api/v1/cleanup/"
COSTS = "/api/v1/costs/"
FORECAST = "/api/v1/costs/forecast/"
ANOMALIES = ("/api/v1/anomaly-rules/", "/api/v1/anomaly-rules/{kind}/")
RULES = tuple(f"/api/v1/alert-rules/{rest}" for rest in ("", "{kind}/", "{kind}/preview/"))
OF_JOBS = tuple(f"/api/v1/jobs/{{id}}/{part}/" for part in ("log", "events", "points", "findings"))
SERIES = ("/api/v1/samples/gpus/", "/api/v1/samples/hosts/", "/api/v1/samples/serving/")


@pytest.fixture(scope="module")
def schema():
    out = StringIO()
    # Fails on any warning of the generator.
    call_command("spectacular", "--fail-on-warn", "--format", "openapi-json", stdout=out)
    return strict(json.loads(out.getvalue()))


def operations(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def checker(schema, answer_schema):
    """Resolves #/components/… against the whole document."""
    return Draft202012Validator({**answer_schema, "components": schema["components"]}, format_checker=FormatChecker())


def hold_to_schema(schema, path, answer, method="get"):
    media = schema["paths"][path][method]["responses"][str(answer.status_code)]["content"]["application/json"]
    checker(schema, media["schema"]).validate(answer.json())


def strict(schema):
    """A copy in which a field that the schema does not name is an error too."""
    components = {
        name: {**component, "additionalProperties": False} if "properties" in component else component
        for name, component in schema["components"]["schemas"].items()
    }
    return {**schema, "components": {"schemas": components}}


def test_it_is_valid_openapi_3_1(schema):
    assert schema["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(schema).validate()


def test_every_operation_has_an_example_that_fits_its_schema(schema):
    for name, operation in operations(schema):
        for code, response in operation["responses"].items():
            if code == "204":
                continue
            media = response["content"]["application/json"]
            assert media.get("examples"), f"{name} has no example for {code}"
            for example in media["examples"].values():
                checker(schema, media["schema"]).validate(example["value"])


def test_every_body_has_an_example_that_fits_its_schema(schema):
    bodies = {name: operation["requestBody"] for name, operation in operations(schema) if "requestBody" in operation}
    assert bodies
    for name, body in bodies.items():
        # A file comes as a form.
        media = body["content"].get("application/json") or body["content"]["multipart/form-data"]
        assert media.get("examples"), f"{name} has no example"
        for example in media["examples"].values():
            checker(schema, media["schema"]).validate(example["value"])


def test_every_operation_and_parameter_is_described(schema):
    for name, operation in operations(schema):
        assert operation.get("description"), name
        for parameter in operation.get("parameters", []):
            if "enum" not in parameter["schema"] and parameter["name"] not in {"id", "slug"}:
                assert parameter.get("description"), f"{name}: {parameter['name']}"


def test_every_operation_names_its_refusals(schema):
    for name, operation in operations(schema):
        assert {"400", "401", "403", "404", "429"} <= set(operation["responses"]), name
        assert {"token": []} in operation["security"], name


@pytest.mark.parametrize("address", LISTS)
def test_lists_and_rows_are_what_the_schema_says(schema, fleet, acme, as_token, address):
    client = as_token(acme, Scope.ADMIN)
    answer = client.get(address, {"limit": 1})
    hold_to_schema(schema, address, answer)
    hold_to_schema(
        schema,
        row_path(address),
        client.get(first_detail(client, address)),
    )


def row_path(address):
    return f"{address}{{slug}}/" if address == "/api/v1/teams/" else f"{address}{{id}}/"


def test_series_are_what_the_schema_says(schema, fleet, acme, as_token):
    for address in SERIES:
        hold_to_schema(schema, address, as_token(acme).get(address, {"instance": fleet.instance.pk}))
        hold_to_schema(schema, address, as_token(acme).get(address, {"instance": 1}))


def test_parts_of_jobs_are_what_the_schema_says(schema, fleet, acme, as_token):
    for path in OF_JOBS:
        for asked in ({}, {"attempt": 1}, {"attempt": "x"}, {"colour": 1}):
            hold_to_schema(schema, path, as_token(acme).get(path.format(id=fleet.job.pk), asked))
        hold_to_schema(schema, path, as_token(acme).get(path.format(id=999_999)))


def test_usage_is_what_the_schema_says(schema, counted, acme, as_token):
    client = as_token(acme)
    for asked in ({}, {"split": "project"}, {"split": "colour"}):
        hold_to_schema(schema, USAGE, client.get(USAGE, asked))


def test_cleanup_is_what_the_schema_says(schema, fleet, acme, as_token):
    type(fleet.instance).objects.update(managed=False)
    client = as_token(acme)
    for asked in ({}, {"kind": "unmanaged"}, {"kind": "colour"}):
        hold_to_schema(schema, CLEANUP, client.get(CLEANUP, asked))


def test_costs_are_what_the_schema_says(schema, fleet, acme, as_token):
    spend_on(acme, timezone.localdate(), "30", instance=fleet.instance)
    client = as_token(acme)
    for asked in ({}, {"by": "day,machine"}, {"by": "colour"}):
        hold_to_schema(schema, COSTS, client.get(COSTS, asked))
    for asked in ({}, {"account": "1,2"}, {"meter": "colour"}):
        hold_to_schema(schema, FORECAST, client.get(FORECAST, asked))


def test_rules_about_money_are_what_the_schema_says(schema, fleet, acme, as_token):
    client = as_token(acme, Scope.OPERATE)
    for path in ANOMALIES:
        hold_to_schema(schema, path, client.get(path.format(kind="costs_weekday")))
    change = {"thresholds": {"factor": 2}}
    changed = client.patch(ANOMALIES[1].format(kind="costs_weekday"), change, content_type="application/json")
    hold_to_schema(schema, ANOMALIES[1], changed, method="patch")


def test_rules_are_what_the_schema_says(schema, fleet, acme, as_token):
    client = as_token(acme)
    for path in (*RULES, *ABOUT_ALERTS):
        hold_to_schema(schema, path, client.get(path.format(kind="thermal")))


def test_every_address_of_the_schema_is_held_to_it_here(schema):
    rows = {row_path(address) for address in LISTS}
    actions = {f"/api/v1/scrape-targets/{{id}}/{action}/" for action in ("read", "confirm-host-key")}
    acts = ("acknowledge", "snooze", "wake", "escalate", "resolve")
    actions |= {f"/api/v1/alerts/{{id}}/{action}/" for action in acts}
    actions |= {"/api/v1/channels/{id}/test/", "/api/v1/offer-sources/preview/", "/api/v1/exchange-rates/import/"}
    single = {*RULES, *ABOUT_ALERTS, "/api/v1/me/", "/api/v1/plan/", USAGE, CLEANUP, COSTS, FORECAST, *ANOMALIES}
    actions |= {f"/api/v1/accounts/{{id}}/{action}/" for action in ("pause", "verify")}
    actions |= {f"/api/v1/{rest}/" for rest in ("images/{id}/verdict", "environments/diff")}
    actions |= {f"/api/v1/runbooks/{{id}}/{action}/" for action in ("export", "verdict")}
    actions |= {f"/api/v1/idle-stops/{{id}}/{action}/" for action in ("snooze", "veto", "stop-now")}
    actions |= {
        f"/api/v1/{rest}/"
        for rest in ("launch-blocks/{id}/lift", "planned-actions/{id}/cancel", "planned-actions/{id}/postpone")
    }
    actions |= {f"/api/v1/{rest}/" for rest in ("bills/ask", "reconciliations/{id}/accept", "adjustments/{id}/reverse")}
    actions |= {f"/api/v1/balances/{rest}/" for rest in ("runways", "limits")}
    actions |= {f"/api/v1/{rest}/preview/" for rest in ("attribution-rules", "reattributions")}
    actions |= {
        "/api/v1/attribution-rules/{id}/move/",
        "/api/v1/idle-policies/{id}/move/",
        "/api/v1/idle-policies/{id}/dry-run/",
    }
    actions |= {"/api/v1/machine-uses/{id}/extend/"}
    actions |= {"/api/v1/right-sizing/{id}/dismiss/"}
    actions |= {"/api/v1/instances/{id}/heartbeat/"}
    actions |= {f"/api/v1/operations/{rest}/" for rest in ("bulk", "launch", "{id}/abandon")}
    actions |= {f"/api/v1/charges/{{id}}/{action}/" for action in ("end", "remove")}
    actions |= {f"/api/v1/jobs/{{id}}/{action}/" for action in ("stop", "rerun", "confirm-host-key")}
    assert set(schema["paths"]) == {*LISTS, *rows, *SERIES, *actions, *single, *OF_JOBS}


@pytest.mark.parametrize("address", LISTS)
def test_refusals_are_what_the_schema_says(schema, fleet, acme, client, as_token, address):
    hold_to_schema(schema, address, client.get(address))
    hold_to_schema(schema, address, as_token(acme, Scope.ADMIN).get(address, {"limit": "x"}))
    hold_to_schema(schema, address, as_token(acme, Scope.ADMIN).get(address, {"team": "rival"}))


def test_me_is_what_the_schema_says(schema, fleet, acme, alice, as_user, as_token):
    for client in (as_user(alice), as_token(acme)):
        hold_to_schema(schema, "/api/v1/me/", client.get("/api/v1/me/"))


def test_it_is_the_same_in_every_language(db, client):
    formats = {"Accept": "application/vnd.oai.openapi+json"}
    schemas = [
        client.get("/api/v1/schema/", headers={**formats, "Accept-Language": language}).json()
        for language in ("en", "zh-hans")
    ]
    assert schemas[0] == schemas[1]


def test_schema_and_docs_are_open_to_all(db, client):
    answer = client.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.json()["openapi"].startswith("3.1")
    assert client.get("/api/v1/docs/").status_code == 200
