"""A plan's job on a real OpenSSH server: its machine is looked at, its software installed, and its launcher run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.book.manage import stop_job
from jobs.book.models import Job, JobState, Node
from jobs.logs.read import whole_log
from jobs.metrics.models import JobPoint
from tests.jobs.conftest import ACTOR, go_on, newest
from tests.jobs.plans.conftest import new_job
from tests.jobs.plans.test_form import filled

pytestmark = pytest.mark.django_db(transaction=True)
# A plan that asks for two GPUs of a card that no test has.
DRIVERLESS = {"gpu": "l40s-48", "gpu_name": "L40S", "gpus_per_machine": 2}


def node_of(job) -> Node:
    return newest(job).nodes.get()


def log_of(job) -> str:
    return b"".join(whole_log(node_of(job))).decode()


def kinds(job) -> list[str]:
    return list(job.events.order_by("at", "pk").values_list("kind", flat=True))


def script(text: str) -> list[dict[str, object]]:
    return [{"path": "install.sh", "text": text}]


MAKES = 'mkdir -p "$VENV/bin"; echo "export WHERE=venv" >"$VENV/bin/activate"; echo installing into it\n'


def test_what_a_machine_is_is_kept(machine_of, begin):
    job = go_on(begin("echo hi", machine_of()[0]))
    facts = node_of(job).facts
    assert facts["cpus"] == os.cpu_count()
    assert facts["memory_bytes"] > 1024**3
    assert facts["disk_free_bytes"] > 0
    assert facts["python"].startswith("3.")
    assert facts["warnings"] == []
    assert job.state == JobState.SUCCEEDED


def test_a_machine_on_which_it_cannot_work_is_refused(machine_of, begin):
    job = go_on(begin("echo never", machine_of()[0], predicted=DRIVERLESS))
    assert (job.state, job.why, node_of(job).error) == (JobState.FAILED, "environment", "environment")
    assert node_of(job).facts["warnings"][0] == {"code": "no_gpu", "level": "refused", "values": {"gpu": "L40S"}}
    assert log_of(job) == ""
    assert kinds(job) == ["queued", "preparing", "unfit", "failed"]


def test_it_is_not_tried_again_there(machine_of, begin):
    job = go_on(begin("echo never", machine_of()[0], predicted=DRIVERLESS, retries=3))
    assert job.attempts.count() == 1


def test_who_wants_it_anyway_gets_it_with_the_warning(machine_of, begin):
    job = go_on(begin("echo did it", machine_of()[0], predicted=DRIVERLESS, starts_anyway=True))
    assert (job.state, log_of(job)) == (JobState.SUCCEEDED, "did it\n")
    assert node_of(job).facts["warnings"]


def test_the_install_script_runs_before_the_launch_and_in_the_log(machine_of, begin):
    machine, server = machine_of()
    job = go_on(begin("echo ran in $WHERE", machine, installs=True, files=script(MAKES)))
    assert log_of(job) == "installing into it\nran in venv\n"
    assert kinds(job) == ["queued", "preparing", "installed", "prepared", "running", "started", "ended", "succeeded"]
    # Once for each machine: another job with the same script takes what is there.
    again = go_on(begin("echo ran in $WHERE", machine, installs=True, files=script(MAKES)))
    [kept] = [path for path in (server.folder / "environments").iterdir() if path.is_dir()]
    assert log_of(again) == f"What install.sh installs is there already: {kept}\nran in venv\n"


def test_it_sees_the_jobs_values_and_leaves_secrets_for_the_launch(machine_of, begin):
    text = f'echo "index $TORCH_INDEX_URL token $TOKEN"\n{MAKES}'
    order = {"environment": {"TORCH_INDEX_URL": "https://wheels"}, "secrets": {"TOKEN": "verysecret"}}
    job = go_on(begin("echo $TOKEN | wc -c", machine_of()[0], installs=True, files=script(text), **order))
    assert "index https://wheels token ***" in log_of(job)
    assert "verysecret" not in log_of(job)
    assert log_of(job).endswith("11\n")


def test_a_script_that_fails_launches_nothing_and_is_kept_out(machine_of, begin):
    machine, server = machine_of()
    job = go_on(begin("echo never", machine, installs=True, files=script("echo no wheel for this; exit 3\n")))
    assert (job.state, job.why, node_of(job).error) == (JobState.FAILED, "install", "install")
    assert log_of(job) == "no wheel for this\n"
    assert job.events.get(kind="not_installed").values == {"exit_code": 3}
    assert not list((server.folder / "environments").glob("*/installed"))


def test_output_of_the_script_is_no_progress(machine_of, begin):
    job = go_on(
        begin(
            "echo step 2/2 loss=1.0", machine_of()[0], installs=True, files=script(f"echo step 1/9 loss=5.0\n{MAKES}")
        )
    )
    assert list(JobPoint.objects.filter(attempt__job=job).values_list("step", flat=True)) == [2]


def test_a_stop_ends_an_install_with_all_that_it_started(machine_of, begin, tmp_path):
    mark = tmp_path / "alive"
    text = f"sh -c 'while :; do date >\"{mark}\"; sleep 0.05; done' &\nwait\n"
    job = go_on(
        begin("echo never", machine_of()[0], installs=True, files=script(text)), until=lambda _job: mark.exists()
    )
    stop_job(actor=ACTOR, job=job, now=timezone.now())
    go_on(job)
    assert (job.state, job.why) == (JobState.STOPPED, "asked")
    wait_for(lambda: not is_written(mark))
    assert "never" not in log_of(job)


def is_written(path: Path) -> bool:
    before = path.stat().st_mtime_ns
    time.sleep(0.3)
    return path.stat().st_mtime_ns != before


def wait_for(is_so: Callable[[], bool]) -> None:
    for _again in range(20):
        if is_so():
            return
    raise AssertionError("it never came")


# What a person changes on the form where the machines have no GPU: a model that is there, and where the launchers lie.
PLAN = "model=Qwen/Qwen2.5-0.5B&gpu=l40s-48&count=2&lora_rank=8&sequence_length=64&global_batch=8&samples=64&tokens_per_sample=60&epochs=1"


def offline(python: Path, cache: Path) -> str:
    values = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(cache),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "ACCELERATE_USE_CPU": "true",
    }
    return "\n".join(f"{name}={value}" for name, value in values.items())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_from_the_planners_address_to_a_trained_model(
    machine_of, as_user, alice, launchers_python, tiny, tmp_path, launcher
):
    """The planner's page, its button, the form, a real OpenSSH server, the launcher's own files and command on two processes of a real torch."""
    machine, _server = machine_of()
    browser = as_user(alice)
    address = new_job(PLAN, launcher)
    answer = browser.get(address)
    given = filled(
        answer,
        machines=[machine.pk],
        environment=offline(launchers_python, tmp_path / "cache"),
        data_path=str(tiny / "data.jsonl"),
        checkpoint_path=str(tmp_path / "kept"),
        starts_anyway="on",
    )
    given["command"] = (
        str(given["command"]).replace("Qwen/Qwen2.5-0.5B", str(tiny / "model")) + " --log-every=1 --workers=0"
    )
    del given["installs"]
    assert browser.post(address, given).status_code == 302
    job = go_on(Job.objects.get(), rounds=8000)
    assert job.state == JobState.SUCCEEDED, log_of(job)[-3000:]
    points = JobPoint.objects.filter(attempt__job=job, loss__isnull=False).order_by("step")
    steps = points.values_list("steps", flat=True)[0]
    assert list(points.values_list("step", flat=True)) == list(range(1, (steps or 0) + 1))
    assert points.filter(tokens_per_second__gt=0).count() == steps
    assert list((tmp_path / "kept" / "model").glob("*.safetensors"))
    assert "no_gpu" in {one["code"] for one in node_of(job).facts["warnings"]}
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    assert "No NVIDIA driver answers on it; the plan is for" in page
