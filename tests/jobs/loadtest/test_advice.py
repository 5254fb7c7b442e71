"""What a load test suggests, and why."""

from __future__ import annotations

import pytest

from jobs.loadtest.advice import Advice, Watched, advise, share_of
from jobs.loadtest.figures import Percentiles
from jobs.loadtest.knee import Knee, find_knee
from jobs.loadtest.plan import LoadPlan, Loop
from tests.jobs.loadtest.test_knee import CLOSED, server, stage


def advised(*, plan=CLOSED, stages=None, knee=None, watched=Watched(), engine="vllm", command="", replicas=1):  # noqa: B008
    stages = stages or server(8, 2.0)
    found = advise(
        plan,
        stages,
        knee or find_knee(plan, stages),
        watched=watched,
        engine=engine,
        command=command,
        replicas=replicas,
    )
    return {one.code: one for one in found}


def test_as_many_at_once_as_the_knee_has_of_each_replica():
    one = advised()["max_concurrency"]
    assert (one.value, one.because, one.setting) == (8, "knee_flat", "--max-num-seqs")
    assert advised(replicas=2)["max_concurrency"].value == 4
    assert advised(replicas=3)["max_concurrency"].value == 3
    assert advised(stages=server(100, 2.0))["max_concurrency"].because == "no_knee"


def test_open_stages_are_turned_into_as_many_at_once_by_littles_law():
    plan = LoadPlan(Loop.OPEN, (2, 4))
    stages = [stage(2, 2, at_once=3.0), stage(4, 4, at_once=6.2)]
    assert advised(plan=plan, stages=stages)["max_concurrency"].value == 7
    assert advised(plan=plan, stages=stages)["requests_per_second"].value == 4


def test_so_many_may_wait_as_leave_the_promise_whole():
    plan = LoadPlan(Loop.CLOSED, CLOSED.levels, promise_ttft_seconds=2.2)
    one = advised(plan=plan)["queue_limit"]
    # 4 requests a second at the knee; TTFT p95 is 0.2 s there.
    assert (one.value, one.because) == (8, "queue_promise")
    assert advised()["queue_limit"] == Advice("queue_limit", 8, "queue_round", {"seconds": 2.0, "rate": 4.0})


def test_a_full_cache_on_a_card_with_room_gets_more_of_it():
    watched = Watched(kv_cache_share=0.97, preempted=3, gpu_memory_share=0.86)
    one = advised(watched=watched, command="vllm serve m --gpu-memory-utilization 0.85")["memory_share"]
    assert (one.value, one.because, one.setting) == (0.95, "kv_full_room", "--gpu-memory-utilization")
    watched = Watched(kv_cache_share=0.97, gpu_memory_share=0.93)
    assert advised(watched=watched, command="--gpu-memory-utilization=0.85")["memory_share"].value == 0.89


@pytest.mark.parametrize(
    ("watched", "because"),
    [
        (Watched(), "kv_unknown"),
        (Watched(kv_cache_share=0.3), "kv_spare"),
        (Watched(kv_cache_share=0.7), "kv_fits"),
        (Watched(kv_cache_share=0.95), "kv_full"),
        (Watched(kv_cache_share=0.95, gpu_memory_share=0.99), "kv_full_card"),
        (Watched(kv_cache_share=0.5, preempted=1, gpu_memory_share=0.99), "kv_full_card"),
    ],
)
def test_else_it_is_left_and_why_is_said(watched, because):
    one = advised(watched=watched)["memory_share"]
    assert (one.value, one.because) == (None, because)


def test_nothing_is_suggested_where_not_even_the_first_stage_was_kept():
    assert advised(stages=[stage(1, 1, failed=9)], knee=Knee(None, "failed")) == {}


def test_no_promise_that_is_broken_already_lets_anybody_wait():
    plan = LoadPlan(Loop.CLOSED, (1, 2), promise_ttft_seconds=0.2)
    stages = [stage(1, 1, ttft=Percentiles(0.2, 0.2, 0.2)), stage(2, 2, ttft=Percentiles(0.2, 0.3, 0.3))]
    assert advised(plan=plan, stages=stages)["queue_limit"].value == 0


@pytest.mark.parametrize(
    ("command", "engine", "share"),
    [
        ("vllm serve m", "vllm", 0.9),
        ("vllm serve m --gpu-memory-utilization 0.8", "vllm", 0.8),
        ("vllm serve m --gpu_memory_utilization=.75 --x", "vllm", 0.75),
        ("a --gpu-memory-utilization 0.8\nb --gpu-memory-utilization 1", "vllm", 1.0),
        ("text-generation-launcher --cuda-memory-fraction 0.7", "tgi", 0.7),
        ("text-generation-launcher", "tgi", None),
        ("serve", "other", None),
    ],
)
def test_the_share_that_a_command_gives(command, engine, share):
    assert share_of(command, engine) == share
