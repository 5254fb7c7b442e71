"""The fakes themselves: what is not as the description says fails the test that met it, and controls do what they say."""

from __future__ import annotations

import json

import pytest

from fleet.providers.errors import ProviderError
from fleet.providers.runpod import RunPod
from tests.fleet.providers.fakes.description import SPECS, Description, Drift, load, shut
from tests.fleet.providers.fakes.runpod import RunPodFake

needs_descriptions = pytest.mark.skipif(
    not SPECS.exists(), reason="the saved descriptions (../shared/specs) are not here"
)


@pytest.fixture
def runpod(monkeypatch):
    fake = RunPodFake()
    monkeypatch.setenv("RUNPOD_ENDPOINT_URL", fake.url)
    fake.hurry(monkeypatch)
    yield fake
    fake.close()


@pytest.fixture
def adapter(runpod):
    return RunPod(runpod.options)


@needs_descriptions
def test_an_answer_that_the_description_does_not_allow_is_a_drift(runpod, adapter):
    runpod.seed()
    runpod.machines["pod001"]["status"] = "NAPPING"
    with pytest.raises(ProviderError):
        list(adapter.instances())
    assert any("NAPPING" in drift for drift in runpod.drifts)


@needs_descriptions
def test_an_answer_without_what_the_description_promises_is_a_drift(runpod, adapter):
    runpod.seed()
    del runpod.machines["pod001"]["createdAt"]
    with pytest.raises(ProviderError):
        list(adapter.instances())
    assert any("createdAt" in drift for drift in runpod.drifts)


@needs_descriptions
def test_a_request_that_the_description_does_not_know_is_a_drift(runpod, adapter):
    with pytest.raises(ProviderError):
        adapter._api.send("POST", "/v2/pods", json={"name": "a", "image": "b", "gpus": 2})
    with pytest.raises(ProviderError):
        adapter._api.get("/v2/pods", page="2")
    assert len(runpod.drifts) == 2


def test_a_path_that_nobody_answers_is_a_drift(runpod, adapter):
    with pytest.raises(ProviderError):
        adapter._api.get("/v2/nowhere")
    assert runpod.drifts


def test_a_wrong_key_is_refused_before_anything_is_done(runpod):
    runpod.seed()
    with pytest.raises(ProviderError):
        RunPod({"api_key": "another"}).terminate(runpod.ref(runpod.machines["pod001"]))
    assert len(runpod.machines) == 1


def test_a_lost_answer_was_carried_out_and_a_refused_act_was_not(runpod, adapter):
    first, second = runpod.seed(2)
    runpod.lose_answer("terminate")
    with pytest.raises(ProviderError):
        adapter.terminate(first)
    runpod.refuse(500, on="terminate")
    runpod._troubles.pop(0)
    with pytest.raises(ProviderError):
        adapter.terminate(second)
    assert list(runpod.machines) == [second.external_id]


def test_trouble_can_wait_for_the_second_request_and_end(runpod, adapter):
    runpod.refuse(500, on="list", after=1, times=1)
    assert list(adapter.instances()) == []
    with pytest.raises(ProviderError):
        list(adapter.instances())
    assert list(adapter.instances()) == []


@needs_descriptions
def test_every_saved_description_can_be_read():
    names = [path.name for path in SPECS.iterdir() if "openapi" in path.name or "swagger" in path.name]
    assert all(load(name) for name in names)


SWAGGER = {
    "swagger": "2.0",
    "basePath": "/v1",
    "paths": {
        "/vms/{id}": {
            "get": {
                "parameters": [{"name": "full", "in": "query", "type": "string"}],
                "responses": {"200": {"schema": {"$ref": "#/definitions/VM"}}, "404": {}},
            },
            "put": {
                "parameters": [{"name": "body", "in": "body", "schema": {"$ref": "#/definitions/VM"}}],
                "responses": {"204": {}},
            },
        }
    },
    "definitions": {"VM": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}},
}


def test_a_closed_description_allows_no_other_property():
    """For descriptions that require nothing: else a fake could tell what its provider never does."""
    document = json.loads(json.dumps(SWAGGER))
    loose, closed = Description(document), Description(shut(document))
    extra = {"id": "7", "mood": "good"}
    loose.check_answer("GET", "/v1/vms/7", 200, "application/json", extra, forced=False)
    with pytest.raises(Drift, match="mood"):
        closed.check_answer("GET", "/v1/vms/7", 200, "application/json", extra, forced=False)


def test_descriptions_of_the_old_kind_hold_too():
    described = Description(SWAGGER)
    described.check_request("PUT", "/v1/vms/7", {}, {"id": "7"})
    described.check_answer("GET", "/v1/vms/7", 200, "application/json", {"id": "7"}, forced=False)
    with pytest.raises(Drift, match="'id' is a required property"):
        described.check_request("PUT", "/v1/vms/7", {}, {})
    with pytest.raises(Drift, match="required"):
        described.check_answer("GET", "/v1/vms/7", 200, "application/json", {}, forced=False)
    with pytest.raises(Drift, match="never answers 201"):
        described.check_answer("GET", "/v1/vms/7", 201, "application/json", {}, forced=False)
    with pytest.raises(Drift, match="no operation"):
        described.check_request("GET", "/v2/vms/7", {}, None)
