"""A job from a plan in the browser: the form filled, machines with what speaks against them, and what is kept."""

from __future__ import annotations

from html import unescape

import pytest
from django.utils import timezone

from fleet.inventory.machines import place_hold
from fleet.inventory.models import HoldKind
from jobs.book.models import Job
from tests.jobs.conftest import ACTOR
from tests.jobs.plans.conftest import new_job
from tests.jobs.plans.test_drafts import ONE, SERVES, SPLIT

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def form_of(answer):
    return answer.context["form"]


def filled(answer, **more: object) -> dict[str, object]:
    """The form as the page showed it."""
    form = form_of(answer)
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    given = {name: value for name, value in values.items() if value is not None and value is not False and value != ""}
    given["machines"] = [getattr(machine, "pk", machine) for machine in form.initial.get("machines", [])]
    return given | more


def test_the_planner_links_to_the_form(browser):
    page = unescape(browser.get(f"/t/acme/planner/?{ONE}").content.decode())
    assert "/t/acme/jobs/new/?launcher=torchrun&plan=" in page
    assert "/t/acme/jobs/new/?launcher=vllm" not in page


def test_viewers_see_no_way_to_launch(as_user, vera):
    browser = as_user(vera)
    assert "/jobs/new/?launcher=" not in browser.get(f"/t/acme/planner/?{ONE}").content.decode()
    assert browser.get(new_job()).status_code == 403


def test_the_form_is_filled_and_the_job_keeps_the_plan(browser, make_machine):
    machine = make_machine("good")
    answer = browser.get(new_job())
    given = filled(answer, environment="TORCH_INDEX_URL=https://wheels.example/cu128")
    assert given["machines"] == [machine.pk]
    assert given["kind"] == "training"
    assert browser.post(new_job(), given).status_code == 302
    job = Job.objects.get()
    assert (job.launcher, job.processes_per_node) == ("torchrun", 2)
    assert "count=2" in job.plan
    assert job.command.startswith("torchrun")
    assert {file["path"] for file in job.files} == {"install.sh", "train_ddp.py", "finetune.py"}
    assert job.predicted["gpu"] == "l40s-48"


def test_machines_say_what_speaks_against_them(browser, make_machine):
    make_machine("small", "RTX 4090", 1)
    make_machine("old", driver="470.57.02")
    make_machine("other", "H100 SXM", 8)
    held = make_machine("held")
    place_hold(actor=ACTOR, instance=held, kind=HoldKind.PERSON, reason="mine", owner=None, now=timezone.now())
    answer = browser.get(new_job())
    page = unescape(answer.content.decode())
    for said in (
        "too few GPUs: 1, the plan takes 2",
        "its driver 470.57.02 is older than",
        "planned for",
        "held already",
    ):
        assert said in page, said
    assert [machine.name for machine in form_of(answer).initial["machines"]] == ["other"]


def test_a_gpu_that_is_too_small_says_so(browser, make_machine):
    make_machine("small", "RTX 3060", 8, gpu_memory_mib=12_288)
    page = unescape(browser.get(new_job("model=Qwen/Qwen2.5-7B&gpu=a100-sxm-80&count=1")).content.decode())
    assert "its GPUs have 12" in page


def test_as_many_machines_as_the_plan_takes(browser, make_machine):
    make_machine("one", gpus=8)
    answer = browser.get(new_job(SPLIT, "megatron"))
    assert form_of(answer).initial["machines"] == []
    given = filled(answer, machines=[form_of(answer).fields["machines"].queryset.get().pk])
    refused = browser.post(new_job(SPLIT, "megatron"), given | {"environment": "MEGATRON=/opt/megatron"})
    assert "The plan is for 2 machines" in refused.content.decode()
    assert not Job.objects.exists()


def test_what_the_launcher_asks_for_has_to_be_given(browser, make_machine):
    for name in ("one", "two"):
        make_machine(name, gpus=8)
    answer = browser.get(new_job(SPLIT, "megatron"))
    assert "MEGATRON=" in form_of(answer).initial["environment"]
    refused = browser.post(new_job(SPLIT, "megatron"), filled(answer))
    assert "MEGATRON has no value: directory of a checkout of Megatron-LM" in unescape(refused.content.decode())


def test_a_server_is_begun_with_its_port_on_the_loopback_alone(browser, make_machine):
    make_machine("server", "RTX 3090", 1)
    address = new_job("work=serving&gpu=rtx-3090-24&count=1", "vllm")
    answer = browser.get(address)
    browser.post(address, filled(answer, environment="TORCH_INDEX_URL=x\nVLLM_INDEX_URL=y"))
    job = Job.objects.get()
    assert (job.serving["port"], job.serving["engine"]) == (8000, "vllm")
    assert "--host=127.0.0.1" in job.command
    # Readiness, load test and gateway come through SSH, and have no key.
    assert "--api-key" not in job.command


def test_another_like_it_keeps_plan_and_files(browser, make_machine):
    make_machine("good")
    browser.post(new_job(), filled(browser.get(new_job()), environment="TORCH_INDEX_URL=x"))
    first = Job.objects.get()
    address = f"/t/acme/jobs/new/?like={first.pk}"
    assert browser.post(address, filled(browser.get(address))).status_code == 302
    again = Job.objects.exclude(pk=first.pk).get()
    assert (again.plan, again.files, again.predicted) == (first.plan, first.files, first.predicted)
    assert again.rerun_of == first


@pytest.mark.parametrize(("plan", "launcher"), [(SERVES, "torchrun"), (ONE, "nothing"), ("samples=x", "torchrun")])
def test_what_makes_no_job_leads_back_to_the_planner(browser, plan, launcher):
    answer = browser.get(new_job(plan, launcher))
    assert answer.headers["Location"] == "/t/acme/planner/"
