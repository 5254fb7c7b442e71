"""POST /api/v1/plan/: what a plan answers is what the schema says, for every kind of plan, and refusals name their field."""

from __future__ import annotations

import json

import pytest

from fleet.teams.models import Scope
from planner.web.answer import answer
from planner.web.inputs import PlanInput
from planner.web.options import written
from planner.web.schema import EXAMPLE_INPUT, example, shortened
from tests.api.test_schema import hold_to_schema, schema  # noqa: F401 - a fixture

PLANS = {
    "usual": {},
    "typed purchase": {"gpu": "a10-24", "purchase_price": "2000", "power": "own-room", "price_per_gpu_hour": "0.5"},
    "nothing fits": {"model": "meta-llama/Meta-Llama-3.1-405B", "method": "full", "gpu_ids": ["t4-16"], "most_gpus": 8},
    "serving": {"work": "serving", "model": "meta-llama/Meta-Llama-3.1-70B", "seconds_per_token": 0.015},
    "no CUDA": {"work": "serving", "gpu": "mi300x-192"},
    "old driver": {"gpu": "h100-sxm-80", "driver": "470.57.02"},
    "mixture": {"method": "full", "model": "mistralai/Mixtral-8x7B-v0.1", "link": "ethernet-10"},
}


@pytest.fixture
def ask(acme, as_token):
    client = as_token(acme, Scope.READ)
    return lambda body: client.post("/api/v1/plan/", body, content_type="application/json")


@pytest.mark.parametrize("name", list(PLANS))
def test_every_plan_is_what_the_schema_says(schema, ask, name):  # noqa: F811
    told = ask(PLANS[name])
    assert told.status_code == 200
    hold_to_schema(schema, "/api/v1/plan/", told, "post")


def test_the_example_is_what_its_input_gives():
    asked = PlanInput(data=EXAMPLE_INPUT)
    asked.is_valid(raise_exception=True)
    made = json.loads(json.dumps(shortened(written(answer(asked.validated_data)))))
    assert shape_of(made) == shape_of(example())


def shape_of(value):
    if isinstance(value, dict):
        return {name: shape_of(each) for name, each in value.items()}
    return [shape_of(each) for each in value] if isinstance(value, list) else type(value).__name__


def test_a_wrong_value_is_refused_by_the_name_of_its_field(ask):
    told = ask({"sequence_length": -5})
    assert told.status_code == 400
    assert told.json()["field"] == "sequence_length"
    assert ask({"config": '{"model_type": "llama", "hid'}).json()["field"] == "config"
    assert ask([1]).json()["error"] == "invalid"


def test_sentences_are_in_the_language_that_is_asked_for(acme, as_token):
    client = as_token(acme, Scope.READ)
    told = client.post(
        "/api/v1/plan/", {"method": "qlora"}, content_type="application/json", headers={"Accept-Language": "zh-hans"}
    )
    assert told.json()["ladder"][0]["name"] == "单卡"


def test_what_cannot_be_bought_at_a_known_price_is_not_compared(ask):
    assert ask({"gpu": "b200-sxm-180"}).json()["owning"]["comparison"] is None
    told = ask({"gpu": "h100-sxm-80"}).json()["owning"]
    assert told["purchase_source"]["observed_on"] == "2026-11-30"
    assert {band["key"] for band in told["comparison"]["sensitivity"]} >= {"rent", "price", "years"}
