"""What remedies save, by the planner's terms: what fits first, what does nothing left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.diagnosis.diagnose import diagnose
from jobs.diagnosis.evidence import Evidence, Predicted
from jobs.diagnosis.finding import Remedy
from jobs.diagnosis.savings import ordered, remedy_of
from jobs.diagnosis.settings import setting
from planner.memory.training import training_memory
from planner.runs import TrainingRun
from tests.jobs.diagnosis.logs import LOGS
from tests.jobs.diagnosis.scenes import GIB, gpu, log, out_of_memory, serving, training
from tests.planner.test_training_memory import MEGATRON, RECIPE


def of(evidence: Evidence, *codes: str, missing: float | None = None) -> dict[str, float | None]:
    return {one.code: one.saves_bytes for one in ordered(codes, evidence, missing=missing)}


def test_each_remedy_takes_from_its_own_terms() -> None:
    four = training()
    assert of(four, "shard_optimizer") == {"shard_optimizer": 22.5 * GIB}
    assert of(four, "eight_bit_optimizer") == {"eight_bit_optimizer": 22.5 * GIB}
    assert of(four, "chunked_loss") == {"chunked_loss": 4 * GIB * 0.95}
    assert of(four, "checkpoint_activations") == {"checkpoint_activations": 8.5 * GIB}
    assert of(four, "quantize_base") == {"quantize_base": 15 * GIB * 0.72}


def test_what_is_not_known_is_not_made_up() -> None:
    assert of(training(predicted=Predicted()), "shard_optimizer", "more_gpus") == {
        "shard_optimizer": None,
        "more_gpus": None,
    }


def test_what_gives_too_little_comes_after_what_is_enough() -> None:
    codes = ("chunked_loss", "eight_bit_optimizer", "more_gpus")
    assert list(of(training(), *codes)) == ["chunked_loss", "eight_bit_optimizer", "more_gpus"]
    assert list(of(training(), *codes, missing=10 * GIB)) == ["eight_bit_optimizer", "more_gpus", "chunked_loss"]


def test_what_does_nothing_here_is_left_out() -> None:
    one = training(gpus=(gpu(),), settings={"batch_size": 1.0})
    assert of(one, "shard_optimizer", "shard_parameters", "sequence_parallel", "smaller_batch") == {}
    assert of(training(settings={"zero_stage": 1, "lora_rank": 16}), "shard_optimizer", "lora") == {}
    already = training(predicted=Predicted(terms={"checkpoints": GIB, "recomputed_layer": GIB, "optimizer": 0.0}))
    assert of(already, "checkpoint_activations", "eight_bit_optimizer") == {}


def test_a_batch_is_halved_as_often_as_it_takes() -> None:
    run = training(settings={"batch_size": 16.0})
    assert remedy_of("smaller_batch", run, GIB) == Remedy("smaller_batch", {"from": 16, "to": 8}, 7 * GIB)
    assert remedy_of("smaller_batch", run, 10 * GIB) == Remedy("smaller_batch", {"from": 16, "to": 4}, 10.5 * GIB)
    assert remedy_of("smaller_batch", run, 99 * GIB).values["to"] == 1


def test_settings_of_a_server_are_said_as_they_should_be() -> None:
    evidence = LOGS["serving_memory/utilization_flag"][0]
    (finding,) = diagnose(evidence)
    assert finding.remedies[0] == Remedy("lower_memory_utilization", {"from": 0.95, "to": 0.9})
    (finding,) = diagnose(LOGS["serving_memory/concurrency_sampler"][0])
    assert finding.remedies[0] == Remedy("fewer_sequences", {"from": 512, "to": 256})


def test_a_cache_in_eight_bits_gives_half_of_it_back() -> None:
    evidence = serving(serving=None, predicted=Predicted(terms={"kv_cache": 20 * GIB, "weights": 40 * GIB}))
    assert of(evidence, "kv_fp8", "quantize_weights", "tensor_parallel") == {
        "kv_fp8": 10 * GIB,
        "quantize_weights": 40 * GIB * 0.72,
        "tensor_parallel": 30 * GIB,
    }


def test_fragments_and_others_are_said_by_the_message_itself() -> None:
    (finding,) = diagnose(training(lines=out_of_memory("in forward", unused="9.40 GiB")))
    assert finding.remedies[0] == Remedy("expandable_segments", {}, float(round(9.4 * GIB)))


def test_settings_come_from_the_plan_then_the_command_then_the_log() -> None:
    run = training(settings={}, lines=log("per_device_train_batch_size=4"))
    assert setting(run, "batch_size") == 4
    assert setting(replace(run, command="train.py --per_device_train_batch_size 8"), "batch_size") == 8
    assert setting(replace(run, settings={"batch_size": 2.0}), "batch_size") == 2
    assert setting(training(settings={}), "batch_size") is None


@pytest.mark.parametrize("run", [RECIPE, MEGATRON], ids=["recipe", "megatron"])
def test_terms_are_called_as_the_planner_calls_them(run: TrainingRun) -> None:
    """A term that the planner renamed would leave its remedy without a figure."""
    terms = {term.key: term.expected for term in training_memory(run).terms}
    evidence = training(predicted=Predicted(terms=terms))
    known = of(evidence, "shard_optimizer", "quantize_base", "smaller_batch", "checkpoint_activations")
    assert set(known) == {"shard_optimizer", "quantize_base", "smaller_batch", "checkpoint_activations"}
    assert all(saves for saves in known.values())
