"""A plan's job over the API: the planner's answer names the plan, a launcher fills the rest, what is said goes before."""

from __future__ import annotations

import pytest

from jobs.book.models import Job
from tests.jobs.api.conftest import as_token, make_token, post, script
from tests.jobs.plans.test_drafts import ONE, SERVES

__all__ = ["as_token", "make_token", "post", "script"]
pytestmark = pytest.mark.django_db


def test_the_planners_answer_and_a_launcher_begin_a_job(post, script, make_machine):
    machine = make_machine("good")
    plan = script.post(
        "/api/v1/plan/", {"model": "Qwen/Qwen2.5-0.5B", "gpu": "l40s-48", "count": 2}, "application/json"
    ).json()
    [launcher] = [
        each["launcher"] for each in plan["artefacts"] if each["launcher"] == "accelerate" and not each["unfit"]
    ]
    answer = post(
        plan=plan["query"], launcher=launcher, machines=[machine.pk], environment={"TORCH_INDEX_URL": "https://wheels"}
    )
    assert answer.status_code == 201, answer.text
    job = Job.objects.get()
    assert (job.kind, job.launcher, job.installs, job.processes_per_node) == ("training", "accelerate", True, 2)
    assert job.predicted["seconds_per_step"] == pytest.approx(plan["best"]["step_seconds"]["expected"])
    assert "accelerate.yaml" in answer.json()["files"]


def test_what_is_said_goes_before_the_plan(post, make_machine):
    machine = make_machine("good")
    given = {"name": "mine", "command": "torchrun train_ddp.py", "installs": False, "starts_anyway": True}
    assert post(plan=ONE, launcher="torchrun", machines=[machine.pk], **given).status_code == 201
    job = Job.objects.get()
    assert {name: getattr(job, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "name"),
        ({"name": "run"}, "command"),
        ({"plan": ONE}, "launcher"),
        ({"plan": ONE, "launcher": "slurm"}, "launcher"),
        ({"plan": SERVES, "launcher": "torchrun"}, "launcher"),
        ({"plan": "samples=x", "launcher": "torchrun"}, "plan"),
        ({"plan": ONE, "launcher": "torchrun"}, "environment"),
        ({"plan": "gpu=l40s-48&count=16&method=full", "launcher": "colossalai"}, "machines"),
    ],
)
def test_what_makes_no_job_names_its_field(post, make_machine, given, field):
    answer = post(machines=[make_machine("good").pk], **given)
    assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text
    assert not Job.objects.exists()
