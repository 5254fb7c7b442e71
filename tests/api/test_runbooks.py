"""Images with their versions, verdicts, runbooks to write and export, and two machines side by side, over the API."""

from __future__ import annotations

import pytest

from fleet.inventory.environments.models import Environment
from fleet.inventory.models import EnvironmentReport, Image
from fleet.teams.models import AuditEntry, Scope
from tests.api.conftest import NOW

RUNBOOKS = "/api/v1/runbooks/"
JSON = "application/json"


@pytest.fixture
def bare(fleet) -> Image:
    return Image.objects.create(account=fleet.account, external_id="ami-2", name="bare")


@pytest.fixture
def writer(acme, as_token):
    return as_token(acme, Scope.OPERATE)


def test_an_image_has_its_versions_and_its_runbook(fleet, alice, as_user):
    answer = as_user(alice).get(f"/api/v1/images/{fleet.image.pk}/").json()
    assert answer["runbook"] == Environment.objects.get().pk
    python = {"value": "3.12", "source": "typed", "who": "bob", "at": "2026-11-30T08:00:00Z"}
    assert answer["versions"] == [{"name": "python", "value": "3.12", "said": [python]}]


def test_a_verdict_is_on_a_machine_or_on_a_gpu(fleet, alice, as_user):
    data = {"driver": "570.124.06", "frameworks": {"torch": "2.8.0+cu128"}}
    EnvironmentReport.objects.create(instance=fleet.instance, reported_at=NOW.replace(hour=9), digest="e", data=data)
    fleet.instance.gpu_model = "H100 SXM"
    fleet.instance.save()
    address, client = f"/api/v1/images/{fleet.image.pk}/verdict/", as_user(alice)
    assert client.get(address, {"instance": fleet.instance.pk}).json()["level"] == "full"
    assert client.get(address, {"gpu": "V100 SXM 32 GB", "driver": "570.124.06"}).json()["level"] == "refused"
    unknown = client.get(address, {"gpu": "H100 SXM"}).json()
    assert (unknown["level"], unknown["unknown"]) == ("unknown", ["The driver of the machine is not known."])
    assert client.get(address.replace(f"images/{fleet.image.pk}", f"runbooks/{Environment.objects.get().pk}"), {"gpu": "T4", "driver": "570.124.06"}).json()["level"] == "full"  # fmt: skip


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [({}, 400, "gpu"), ({"instance": 1, "gpu": "x"}, 400, "instance"), ({"instance": 999999}, 404, "instance"), ({"gpus": "x"}, 400, "gpus")],
)  # fmt: skip
def test_what_is_asked_wrongly_is_named(fleet, alice, as_user, query, code, field):
    answer = as_user(alice).get(f"/api/v1/images/{fleet.image.pk}/verdict/", query)
    assert (answer.status_code, answer.json()["field"]) == (code, field)


def test_a_machine_of_another_team_is_not_there(fleet, rival, make_instance, alice, as_user):
    other = make_instance(name="theirs", team=rival)
    assert as_user(alice).get(f"/api/v1/images/{fleet.image.pk}/verdict/", {"instance": other.pk}).status_code == 404
    sides = {"left": fleet.instance.pk, "right": other.pk}
    assert as_user(alice).get("/api/v1/environments/diff/", sides).status_code == 404


def test_a_runbook_is_begun_changed_and_removed(bare, writer):
    body = {"image": bare.pk, "typed": {"frameworks": {"flash_attn": "2.8.3"}}, "notes": "x"}
    made = writer.post(RUNBOOKS, body, content_type=JSON)
    assert made.status_code == 201
    row = made.json()
    assert (row["name"], row["typed"]) == ("bare", {"frameworks": {"flash-attn": "2.8.3"}})
    assert writer.post(RUNBOOKS, body, content_type=JSON).json()["field"] == "image"
    address = f"{RUNBOOKS}{row['id']}/"
    changed = writer.patch(address, {"notes": "y", "edited_at": row["edited_at"]}, content_type=JSON)
    assert (changed.status_code, changed.json()["notes"]) == (200, "y")
    late = writer.patch(address, {"notes": "z", "edited_at": row["edited_at"]}, content_type=JSON)
    assert (late.status_code, Environment.objects.get(pk=row["id"]).notes) == (400, "y")
    assert AuditEntry.objects.filter(action="environment.update", target_id=row["id"]).count() == 2
    assert writer.delete(address).status_code == 204


def test_a_template_needs_a_name_of_its_own(fleet, writer):
    assert writer.post(RUNBOOKS, {"notes": "x"}, content_type=JSON).json()["field"] == "name"
    assert writer.post(RUNBOOKS, {"name": "vllm"}, content_type=JSON).json()["image"] is None
    assert writer.post(RUNBOOKS, {"name": "vllm"}, content_type=JSON).json()["field"] == "name"
    assert len(writer.get(RUNBOOKS, {"template": "true"}).json()["results"]) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"typed": {"driver": "new"}}, "typed.driver"),
        ({"typed": {"frameworks": {"torch": "$(id)"}}}, "typed.frameworks"),
        ({"typed": {"frameworks": {"-r x": "1"}}}, "typed.frameworks"),
        ({"typed": {"cpu": "1"}}, "typed.cpu"),
        ({"price_per_month": "-1"}, "price_per_month"),
        ({"currency": "euros"}, "currency"),
        ({"name": "mine"}, "name"),
    ],
)
def test_what_cannot_be_is_refused_by_name(fleet, writer, body, field):
    row = Environment.objects.get()
    answer = writer.patch(f"{RUNBOOKS}{row.pk}/", body, content_type=JSON)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert Environment.objects.get().typed == row.typed


def test_exports_are_texts_with_their_names(fleet, alice, as_user):
    address, client = f"{RUNBOOKS}{Environment.objects.get().pk}/export/", as_user(alice)
    assert client.get(address).json()["file_name"] == "runbook.md"
    assert "python=3.12" in client.get(address, {"as": "conda"}).json()["text"]
    assert client.get(address, {"as": "exe"}).json()["field"] == "as"


def test_one_runbook_has_versions_pitfalls_and_proof(fleet, alice, as_user):
    Environment.objects.update(typed={"frameworks": {"torch": "2.8.0+cu128"}})
    answer = as_user(alice).get(f"{RUNBOOKS}{Environment.objects.get().pk}/").json()
    assert "no-kernel-image" in [pitfall["symptom"] for pitfall in answer["known_pitfalls"]]
    assert [line["name"] for line in answer["versions"]] == ["cuda", "torch"]
    assert "torch.version.cuda == '12.8'" in answer["verify"]


def test_two_machines_side_by_side(fleet, make_instance, alice, as_user):
    other = make_instance(name="train-02")
    EnvironmentReport.objects.create(instance=other, reported_at=NOW, digest="e", data={"driver": "570.124.06"})
    sides = {"left": fleet.instance.pk, "right": other.pk}
    rows = as_user(alice).get("/api/v1/environments/diff/", sides).json()["rows"]
    assert [(row["name"], row["matters"]) for row in rows] == [("driver", False), ("python", False)]
    assert as_user(alice).get("/api/v1/environments/diff/", {"left": 1}).json()["field"] in {"left", "right"}
