"""A plan's address and a launcher become a job: every launcher's command and files, in the words of the job's own environment."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jobs.book.models import JobKind
from jobs.diagnosis.evidence import Predicted
from jobs.findings.gather import _predicted, _settings
from jobs.plans.commands import filled
from jobs.plans.draft import Draft, PlanRefused, draft_of
from planner.launchers.registry import LAUNCHERS

ONE = "gpu=l40s-48&count=2&model=Qwen/Qwen2.5-0.5B"
SEVERAL = "model=meta-llama/Meta-Llama-3.1-70B&method=lora&gpu=h100-sxm-80&count=16"
SPLIT = "gpu=l40s-48&count=16&method=full"
SERVES = "work=serving&weight_format=awq-int4"
SERVES_WIDE = "work=serving&model=meta-llama/Meta-Llama-3.1-405B&gpu=h100-sxm-80"
# One plan that each launcher can do.
PLANS = {
    "torchrun": ONE,
    "huggingface": ONE,
    "accelerate": ONE,
    "deepspeed": ONE,
    "megatron": SPLIT,
    "colossalai": ONE,
    "paddle": ONE,
    "export": ONE,
    "vllm": SERVES,
    "tensorrt_llm": SERVES,
    "quantize": SERVES,
}
STANDING_IN = ("rackrent-node", "rackrent-data", "rackrent-output", "29499")


def text_of(draft: Draft, path: str) -> str:
    return next(str(file["text"]) for file in draft.files if file["path"] == path)


@pytest.mark.parametrize("key", LAUNCHERS)
def test_every_launcher_makes_a_job(key):
    draft = draft_of(plan=PLANS[key], launcher=key)
    assert draft.installs
    assert draft.predicted["launcher"] == key
    assert draft.command
    for text in (draft.command, *(str(file["text"]) for file in draft.files)):
        assert not [word for word in STANDING_IN if word in text]


@pytest.mark.parametrize("key", LAUNCHERS)
def test_the_shell_reads_every_command(key):
    for plan in (PLANS[key], SERVES_WIDE if key == "vllm" else PLANS[key]):
        draft = draft_of(plan=plan, launcher=key)
        for shell in filter(None, map(shutil.which, ("dash", "bash"))):
            subprocess.run([shell, "-n"], input=draft.command, text=True, check=True)


def test_the_kind_follows_the_launcher():
    kinds = {key: draft_of(plan=plan, launcher=key).kind for key, plan in PLANS.items()}
    assert {key for key, kind in kinds.items() if kind == JobKind.SERVING} == {"vllm", "tensorrt_llm"}
    assert {key for key, kind in kinds.items() if kind == JobKind.COMMAND} == {"export", "quantize"}


def test_several_machines_meet_by_variables_and_marks():
    draft = draft_of(plan=SPLIT, launcher="megatron")
    assert (draft.machines, draft.gpus_per_machine) == (2, 8)
    assert '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"' in draft.command
    # Its own directory on each machine: what is prepared on one alone is not there on the other.
    assert 'if [ "$NODE_RANK" = 0 ]' not in draft.command
    assert draft.command.startswith("set -e\n# ")
    assert {each.name for each in draft.asked} >= {"MEGATRON"}


def test_hosts_in_files_are_filled_when_they_are_known():
    draft = draft_of(plan=SERVES_WIDE, launcher="vllm")
    file = next(file for file in draft.files if file["path"] == "ray.sh")
    assert file["filled"] is True
    assert "ray start --address=10.0.0.7:6379" in filled(str(file["text"]), ["10.0.0.7", "10.0.0.8"], "29501")
    assert 'if [ "$NODE_RANK" = 0 ]; then\n' in draft.command
    assert draft.command.index("bash ray.sh") < draft.command.index("vllm ")
    assert "/v1/models" not in draft.command


def test_data_and_checkpoints_are_where_the_job_says():
    command = draft_of(plan=ONE, launcher="torchrun").command
    assert '--dataset="${RACKRENT_DATA:-train.jsonl}"' in command
    assert '--output="${RACKRENT_CHECKPOINTS:-output}"' in command
    said = subprocess.run(
        ["sh", "-c", f"torchrun() {{ printf '%s\\n' \"$@\"; }}\n{command}"],
        env={"RACKRENT_DATA": "/data/my file.jsonl"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert "--dataset=/data/my file.jsonl" in said
    assert "--output=output" in said


def test_what_was_planned_is_kept_as_the_diagnosis_reads_it():
    kept = draft_of(plan=ONE, launcher="torchrun").predicted
    predicted = _predicted(kept)
    assert predicted.memory_bytes == pytest.approx(sum(predicted.terms.values()))
    assert kept["memory_low_bytes"] < kept["memory_bytes"] < predicted.memory_high_bytes == kept["memory_high_bytes"]
    assert kept["seconds_per_step_low"] < kept["seconds_per_step"] < predicted.seconds_per_step_high
    assert 0 < kept["communication_share"] < 1
    assert predicted.communication_share == kept["communication_share"]
    assert predicted.tokens_per_second == kept["tokens_per_second"] > 0
    assert float(kept["cost"]) == pytest.approx(float(kept["cost_per_hour"]) * kept["hours"], rel=0.01)
    assert _settings(kept)["sequence_length"] == 2048


def test_of_serving_it_is_one_replica():
    predicted = _predicted(draft_of(plan=SERVES, launcher="vllm").predicted)
    assert isinstance(predicted, Predicted)
    assert predicted.first_token_seconds
    assert predicted.requests_at_a_time
    assert predicted.seconds_per_step is None


@pytest.mark.parametrize(
    ("plan", "launcher", "says"),
    [
        (ONE, "slurm", "no launcher of this name"),
        ("sequence_length=0", "torchrun", "sequence_length"),
        (SERVES, "torchrun", "the plan serves"),
        ("work=serving&model=meta-llama/Meta-Llama-3.1-405B&most_gpus=1", "vllm", "Nothing fits"),
    ],
)
def test_what_makes_no_job_says_why(plan, launcher, says):
    with pytest.raises(PlanRefused, match=says):
        draft_of(plan=plan, launcher=launcher)
