"""Images, one image with its runbook, its editing and exports, and two machines side by side."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import environment_of
from fleet.inventory.environments.writing import create_template, edit_environment
from fleet.inventory.models import Image
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.environments.conftest import NOON

PAGE = "/t/acme/images/"
GIVEN = {"python": "3.10", "packages": "torch==2.7.1+cu126\nvllm 0.9.2", "commands": "torchrun train.py", "notes": "a <b>", "currency": "EUR", "price_per_month": "1.50"}  # fmt: skip
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def template(by_bob, acme) -> Environment:
    values = {"name": "vllm serving", "reference": "org/vllm:1", "typed": {"python": "3.12"}}
    return create_template(actor=by_bob, team=acme, values=values, now=NOON)


@pytest.fixture
def one(image) -> str:
    return f"{PAGE}{image.pk}/"


def test_the_list_has_images_and_templates_with_their_versions(image, machine, template, report, vera, as_user):
    report(machine)
    page = as_user(vera).get(PAGE).text
    for text in ("vision 2.4", "vllm serving", "org/vllm:1", "CUDA 12.8", "torch 2.8.0+cu128", "reported, train-01"):
        assert text in page
    assert "New template" not in page


@pytest.mark.parametrize(
    ("query", "there", "not_there"),
    [
        ("origin=template", "vllm serving", "vision 2.4"),
        ("origin=own", "vision 2.4", "vllm serving"),
        ("origin=provider", "No image fits", "vision 2.4"),
        ("q=SERV", "vllm serving", "vision 2.4"),
        ("q=img-1", "vision 2.4", "vllm serving"),
    ],
)
def test_it_is_filtered_and_searched(image, template, vera, as_user, query, there, not_there):
    page = as_user(vera).get(f"{PAGE}?{query}").text
    assert there in page
    assert not_there not in page.split("<tbody>")[-1]


def test_a_page_ends_within_the_templates(account, by_bob, acme, vera, as_user):
    for number in range(98):
        Environment.objects.create(team=acme, name=f"template {number:03}")
    for number in range(5):
        Image.objects.create(account=account, external_id=f"img-{number}", name=f"image {number}")
    first, second = (as_user(vera).get(f"{PAGE}?page={page}").text for page in (1, 2))
    assert ("image 1" in first, "image 2" in first) == (True, False)
    assert ("image 1" in second, "image 2" in second, "image 4" in second) == (False, True, True)


def test_the_list_says_what_runs_on_a_machine_or_a_gpu(image, machine, report, make_instance, vera, as_user):
    report(machine, driver="525.85.12")
    page = as_user(vera).get(f"{PAGE}?on={machine.pk}").text
    assert "may stop at PTX" in page
    page = as_user(vera).get(f"{PAGE}?gpu=V100+SXM+32+GB&driver=580.95.05").text
    assert "does not work" in page
    assert "has no kernels for V100" in page
    assert "is a GPU that is in no table" in as_user(vera).get(f"{PAGE}?gpu=Quantum").text


def test_an_image_shows_every_version_with_its_source(image, machine, report, by_bob, one, vera, as_user):
    report(machine)
    edit_environment(actor=by_bob, environment=environment_of(image), values={"typed": {"python": "3.10"}}, now=NOON)
    page = as_user(vera).get(one).text
    for text in ("3.10", "typed, bob", "3.11.11", "reported, train-01", "V100 SXM2 32GB", "setup.sh"):
        assert text in page
    assert "full support" in as_user(vera).get(f"{one}?gpu=H100+SXM&driver=570.124.06").text
    assert "The driver of the machine is not known." in as_user(vera).get(f"{one}?gpu=H100+SXM").text


def test_versions_and_runbook_are_edited_and_shown(image, one, bob, as_user):
    client = as_user(bob)
    assert client.post(f"{one}edit/", GIVEN).status_code == 302
    row = Environment.objects.get(image=image)
    assert row.typed == {"python": "3.10", "frameworks": {"torch": "2.7.1+cu126", "vllm": "0.9.2"}}
    page = client.get(one).text
    for text in ("torchrun train.py", "a &lt;b&gt;", "bob: ", "launch commands"):
        assert text in page
    assert "1.50 EUR" in client.get(PAGE).text
    assert AuditEntry.objects.get(action="environment.update").new["notes"] == "a <b>"


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("packages", "torch==2.7.1\nrm -rf /", "Line 2"),
        ("packages", "torch==$(id)", "is no version"),
        ("driver", "new", "is no version"),
        ("price_per_month", "-1", "greater than or equal to 0"),
        ("currency", "euros", ""),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_nothing_typed_is_lost(one, bob, as_user, field, value, text):
    answer = as_user(bob).post(f"{one}edit/", {**GIVEN, field: value})
    assert answer.status_code == 422
    assert text in answer.text
    assert "torchrun train.py" in answer.text
    assert list(answer.context["form"].errors) == [field]
    assert not Environment.objects.exists()


def test_who_was_overtaken_keeps_what_they_typed(image, one, by_bob, bob, as_user):
    client = as_user(bob)
    seen = client.get(f"{one}edit/").context["form"]["seen"].value()
    edit_environment(actor=by_bob, environment=environment_of(image), values={"notes": "first"}, now=NOON)
    answer = client.post(f"{one}edit/", {**GIVEN, "seen": seen})
    assert answer.status_code == 422
    assert "Somebody else changed this meanwhile" in answer.text
    assert "torchrun train.py" in answer.text
    assert Environment.objects.get().notes == "first"


def test_a_template_is_made_edited_and_removed(acme, bob, as_user):
    client = as_user(bob)
    made = client.post("/t/acme/environments/add/", {**GIVEN, "name": "Mine", "reference": "org/mine:2"})
    row = Environment.objects.get()
    assert made.url == f"/t/acme/environments/{row.pk}/"
    assert "org/mine:2" in client.get(made.url).text
    assert client.post("/t/acme/environments/add/", {**GIVEN, "name": "Mine"}).status_code == 422
    seen = client.get(f"{made.url}edit/").context["form"]["seen"].value()
    assert client.post(f"{made.url}edit/", {**GIVEN, "name": "Ours", "seen": seen}).status_code == 302
    assert client.post(f"{made.url}remove/").url == PAGE
    assert not Environment.objects.exists()


@pytest.mark.parametrize(
    ("form", "name", "text"),
    [
        ("markdown", "runbook.md", "# vision 2.4"),
        ("requirements", "requirements.txt", "torch==2.8.0"),
        ("conda", "environment.yml", "python=3.11"),
        ("dockerfile", "Dockerfile", "FROM ${BASE_IMAGE}"),
        ("setup", "setup.sh", "#!/usr/bin/env bash"),
    ],
)
def test_every_export_is_a_file(machine, report, one, vera, as_user, form, name, text):
    report(machine)
    answer = as_user(vera).get(f"{one}export/?as={form}")
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert text in answer.text
    assert as_user(vera).get(f"{one}export/?as=exe").status_code == 404


def test_two_machines_side_by_side(machine, report, make_instance, image, vera, as_user):
    other = make_instance(name="train-02", gpu_model="V100 SXM 32 GB", image=image)
    report(machine)
    report(other, driver="580.95.05", frameworks={"torch": "2.9.1+cu128", "vllm": "0.11.0"})
    answer = as_user(vera).get(f"{PAGE}compare/?left={machine.pk}&right={other.pk}")
    names = [name for name, _row in answer.context["rows"]]
    assert names[:3] == ["Driver", "torch", "flash-attn"]
    assert "What matters differs: Driver, torch." in answer.text
    assert answer.text.count("newer") == 2
    assert "does not work" in answer.text
    same = as_user(vera).get(f"{PAGE}compare/?left={machine.pk}&right={machine.pk}")
    assert "Nothing differs" in same.text
    assert "Choose two machines" in as_user(vera).get(f"{PAGE}compare/?left=x&right=99999").text


def test_what_machines_report_is_escaped(image, machine, report, one, vera, as_user):
    report(machine, driver=EVIL, frameworks={EVIL: EVIL, "torch": EVIL})
    client = as_user(vera)
    for address in (PAGE, one, f"{one}?on={machine.pk}", f"{PAGE}compare/?left={machine.pk}&right={machine.pk}"):
        assert EVIL not in client.get(address).text
    assert EVIL not in client.get(f"{one}export/?as=markdown").text
    assert EVIL not in client.get(f"/t/acme/instances/{machine.pk}/").text


def test_the_instance_page_says_whether_its_software_runs_there(machine, report, vera, as_user):
    report(machine, driver="525.85.12")
    page = as_user(vera).get(f"/t/acme/instances/{machine.pk}/").text
    assert "may stop at PTX" in page
    assert f"/t/acme/images/{machine.image_id}/" in page


def test_other_teams_see_none_of_it(image, template, one, charlie, as_user):
    for address in (one, f"{one}export/", f"/t/acme/environments/{template.pk}/"):
        assert as_user(charlie).get(address).status_code == 404
        assert as_user(charlie).get(address.replace("acme", "rival")).status_code == 404


def test_a_viewer_changes_nothing(one, template, vera, as_user):
    for address in (f"{one}edit/", f"{one}remove/", f"/t/acme/environments/{template.pk}/remove/"):
        assert as_user(vera).post(address, GIVEN).status_code == 403
    assert as_user(vera).get(f"{one}edit/").status_code == 403
    assert Environment.objects.count() == 1


def test_looking_saves_nothing(one, vera, as_user):
    as_user(vera).get(one)
    as_user(vera).get(f"{one}export/")
    assert not Environment.objects.exists()


def test_the_number_of_queries_does_not_grow(account, make_instance, report, acme, vera, as_user, django_assert_max_num_queries):  # fmt: skip
    for number in range(40):
        image = Image.objects.create(account=account, external_id=f"img-{number}", name=f"image {number}")
        report(make_instance(name=f"m{number}", image=image, gpu_model="H100 SXM"))
        Environment.objects.create(team=acme, image=image, name="x", typed={"python": "3.10"}, typed_at=NOON + timedelta(1))  # fmt: skip
    client = as_user(vera)
    client.get(PAGE)
    with django_assert_max_num_queries(22):
        client.get(f"{PAGE}?gpu=H100+SXM")
