"""A machine against a plan: what is refused, what is warned of, and what nobody knows is nothing."""

from __future__ import annotations

import pytest

from fleet.inventory.environments.verdicts import gpu_named
from jobs.plans.facts import MachineFacts, read_facts
from jobs.plans.judge import is_refused, judge
from jobs.plans.words import REMARKS, remark_text

GIB = 1024**3
PREDICTED = {
    "gpu": "l40s-48",
    "gpu_name": "L40S",
    "gpus_per_machine": 2,
    "memory_bytes": 30 * GIB,
    "software": {
        "torch": "2.9.1",
        "cuda_tag": "cu128",
        "frameworks": {"deepspeed": "0.18.3"},
        "packages": ["transformers"],
    },
    "host": {"memory": [64 * GIB, 128 * GIB], "vcpus": [8, 16], "data_disk": [100 * GIB, 200 * GIB]},
}
GOOD = {
    "system": "Ubuntu 24.04",
    "cpus": "32",
    "memory_kib": str(256 * 1024**2),
    "disk_free_kib": str(500 * 1024**2),
    "shared_memory_kib": str(16 * 1024**2),
    "driver": "580.95.05",
    "gpu1": "NVIDIA L40S, 46068, 4",
    "gpu2": "NVIDIA L40S, 46068, 4",
    "python": "3.11.9",
    "package.torch": "2.9.1+cu128",
    "package.deepspeed": "0.18.3",
    "package.transformers": "5.24.0",
    "torch_cuda": "12.8",
}


def judged(
    changes: dict[str, str] | None = None, *, without: tuple[str, ...] = (), installs: bool = False, **predicted
):
    answer = {name: value for name, value in {**GOOD, **(changes or {})}.items() if name not in without}
    facts = read_facts(answer)
    card = gpu_named(facts.gpus[0].name) if facts.gpus else None
    return judge(facts, {**PREDICTED, **predicted}, gpu=card, installs=installs)


def found(*given, **named) -> dict[str, str]:
    return {remark.code: remark.level for remark in judged(*given, **named)}


def test_a_machine_as_planned_has_nothing_against_it():
    assert [remark for remark in judged() if remark.level != "note"] == []


@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"gpu1": "", "gpu2": ""}, "no_gpu", "refused"),
        ({"gpu2": ""}, "fewer_gpus", "refused"),
        (
            {"gpu1": "NVIDIA H100 80GB HBM3, 81559, 0", "gpu2": "NVIDIA H100 80GB HBM3, 81559, 0"},
            "other_gpu",
            "warning",
        ),
        ({"gpu2": "NVIDIA GeForce RTX 4090, 24564, 0"}, "gpu_memory", "refused"),
        ({"gpu2": "NVIDIA L40S, 46068, 3000"}, "gpu_in_use", "warning"),
        ({"gpu2": "NVIDIA L40S, 46068, 40000"}, "gpu_in_use", "refused"),
        ({"memory_kib": str(32 * 1024**2)}, "memory", "warning"),
        ({"memory_limit": str(16 * GIB)}, "memory", "warning"),
        ({"cpus": "4"}, "cpus", "note"),
        ({"disk_free_kib": str(50 * 1024**2)}, "disk", "warning"),
        ({"disk_free_kib": "1024"}, "disk_full", "refused"),
        ({"torch_cuda": "none"}, "stack", "refused"),
        ({"driver": "470.57.02"}, "stack", "refused"),
        ({"shared_memory_kib": "65536"}, "shared_memory", "refused"),
    ],
)
def test_each_thing_that_speaks_against_it(changes, code, level):
    assert found(changes)[code] == level


def test_what_the_script_installs_need_not_be_there():
    gone = ("package.torch", "package.deepspeed", "package.transformers", "torch_cuda")
    [missing] = [remark for remark in judged(without=gone) if remark.code == "missing_packages"]
    assert missing.level == "refused"
    assert missing.values == {"names": "torch, deepspeed, transformers"}
    assert not is_refused(judged(without=gone, installs=True))
    # But what it would bring has to run there.
    assert found({"driver": "470.57.02"}, without=gone, installs=True)["stack"] == "refused"


def test_without_a_plan_nothing_is_refused():
    facts = read_facts({**GOOD, "torch_cuda": "none", "disk_free_kib": "10"})
    remarks = judge(facts, {}, gpu=gpu_named("NVIDIA L40S"), installs=False)
    assert {remark.code for remark in remarks} == {"stack", "disk_full"}
    assert not is_refused(remarks)


def test_what_nobody_knows_is_nothing():
    assert read_facts({}) == MachineFacts()
    assert judge(MachineFacts(), {}, gpu=None, installs=False) == ()


def test_a_hostile_answer_stays_small_and_plain():
    facts = read_facts(
        {
            "system": "<script>alert(1)</script>" + "x" * 5000,
            "cpus": "9" * 400,
            "memory_kib": "-1",
            "gpu1": "a,b",
            "gpu2": "x" * 900 + ", 1, 2",
            "package.evil/../x": "1",
            **{f"package.p{number}": "1\x1b[31m" for number in range(500)},
        }
    )
    assert len(facts.system) == 100
    assert (facts.cpus, facts.memory_bytes) == (None, None)
    assert len(facts.packages) == 60
    assert facts.packages["p1"] == "1[31m"
    assert [len(card.name) for card in facts.gpus or ()] == [100]


def test_every_remark_has_words():
    for code in REMARKS:
        values = {
            "gpu": "L40S",
            "found": 1,
            "wanted": 2,
            "index": 0,
            "bytes": 1,
            "needed": 2,
            "free": 3,
            "names": "torch",
        }
        assert "%(" not in remark_text(code, values)
    [stack] = [remark for remark in judged({"torch_cuda": "none"}) if remark.code == "stack"]
    assert "built without CUDA" in remark_text("stack", stack.written()["values"])
    assert remark_text("of another version", {}) == ""
