"""Every launcher's files and commands as they come to a machine: laid out where the commands look for them, hosts filled in, each step started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.book.models import JobState
from jobs.plans.draft import Draft, draft_of
from jobs.runner.bundle import bundle
from planner.launchers.registry import LAUNCHERS
from tests.jobs.conftest import go_on, newest
from tests.jobs.plans.test_drafts import PLANS, SERVES_WIDE
from tests.jobs.plans.test_running import log_of

pytestmark = pytest.mark.django_db(transaction=True)
# Stands in for each program: says that it was started, and which of the files that it is given are not there.
PROGRAM = """#!/bin/sh
echo "started $(basename "$0") $1"
for word; do
    case ${word##*=} in *.py | *.json | *.yaml) [ -e "${word##*=}" ] || { echo "missing $word"; exit 9; } ;; esac
done
"""
STARTED = {
    "torchrun": ["torchrun"],
    "huggingface": ["torchrun"],
    "accelerate": ["accelerate"],
    "deepspeed": ["deepspeed"],
    "megatron": ["python", "python", "torchrun"],
    "colossalai": ["colossalai"],
    "paddle": ["python"],
    "export": ["python"],
    "vllm": ["vllm"],
    "tensorrt_llm": ["python", "trtllm-build", "trtllm-serve"],
    "quantize": ["python", "python"],
}
# On one machine.
ALONE = PLANS | {"megatron": "gpu=l40s-48&count=2&method=full&model=Qwen/Qwen2.5-0.5B"}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in {name for names in STARTED.values() for name in names}:
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)
    for path in ("pretrain_gpt.py", "tools/preprocess_data.py", "examples/quantization/quantize.py"):
        (folder / "checkout" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "checkout" / path).touch()
    return folder


def order_of(draft: Draft, programs: Path) -> dict[str, object]:
    fields = draft.order_fields() | {"installs": False, "starts_anyway": True}
    asked = {each.name: f"{programs}/checkout" for each in draft.asked}
    return fields | {"environment": {**asked, "PATH": f"{programs}:{os.environ['PATH']}"}}


def test_every_launcher_finds_what_it_starts_with(machine_of, begin, programs):
    machine, _server = machine_of()
    for key in LAUNCHERS:
        fields = order_of(draft_of(plan=ALONE[key], launcher=key), programs)
        job = go_on(begin(fields.pop("command"), machine, **fields))
        log = log_of(job)
        assert job.state == JobState.SUCCEEDED, (key, log)
        assert [line.split()[1] for line in log.splitlines() if line.startswith("started")] == STARTED[key], log


def test_a_step_that_fails_ends_it_with_its_own_code(machine_of, begin, programs):
    fields = order_of(draft_of(plan=PLANS["tensorrt_llm"], launcher="tensorrt_llm"), programs)
    (programs / "trtllm-build").write_text("#!/bin/sh\necho no engine\nexit 5\n")
    job = go_on(begin(fields.pop("command"), machine_of()[0], **fields))
    assert (job.state, newest(job).nodes.get().exit_code) == (JobState.FAILED, 5)
    assert "started trtllm-serve" not in log_of(job)


def test_files_name_the_hosts_that_were_found(make_instance, begin):
    """And nothing that is no host gets into a script."""
    place = [{"host": "198.51.100.7", "port": 22, "user": "root"}]
    machines = [make_instance(name=name, managed=True, ssh=place) for name in ("one", "two")]
    draft = draft_of(plan=SERVES_WIDE, launcher="vllm")
    fields = draft.order_fields()
    job = begin(fields.pop("command"), *machines, **fields)
    attempt = newest(job)
    nodes = list(attempt.nodes.order_by("rank"))

    def sent(*hosts: str) -> dict[str, str]:
        made = bundle(attempt=attempt, node=nodes[1], nodes=nodes, hosts=hosts, interface="", secrets={}, tells={})
        return {file.path: file.data.decode() for file in made}

    assert "ray start --address=10.0.0.7:6379" in sent("10.0.0.7", "10.0.0.8")["work/ray.sh"]
    assert "$(reboot)" not in sent("$(reboot)", "10.0.0.8")["work/ray.sh"]
