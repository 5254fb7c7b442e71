"""Printed commands, run as printed on two processes without a GPU: they train, agree with each other, go on after a stop, and export."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.launchers.base import Artefact, Order, TrainingOrder
from planner.launchers.registry import LAUNCHERS, make_artefact
from planner.runs import Layout
from tests.planner.launchers.conftest import PROGRAMS, Bench, finish, losses
from tests.planner.launchers.orders import DATA, LORA, ONE, TWO, serving, training

pytestmark = pytest.mark.timeout(600)

SPLIT = Layout(data=2, zero_stage=3)
# Two machines of one GPU each, both on the loopback.
NODES = replace(TWO, hosts=("127.0.0.1", "localhost"), gpus_per_node=1)
# What the last step of an epoch ends with, from the tiny model's weights and data and this rate.
RATE = " --learning-rate=0.01"
LOSS = 4.243


def order(
    bench: Bench, layout: Layout = DATA, *, data: str = "data.jsonl", port: int = 31700, **changes
) -> TrainingOrder:
    made = training(layout, model=bench.model, dataset=str(bench.folder / data), **changes)
    return replace(made, place=replace(made.place, port=port))


def artefact(key: str, wanted: Order) -> Artefact:
    made = make_artefact(LAUNCHERS[key], wanted)
    assert isinstance(made, Artefact)
    return made


def launch(bench: Bench, key: str, wanted: Order, more: str = "") -> str:
    """The first command as it is printed; `more` arguments make a run shorter."""
    made = artefact(key, wanted)
    bench.write(made)
    text = made.commands[0].text + more
    if key == "deepspeed":
        text = text.replace("train_deepspeed.py", f"{PROGRAMS}/deepspeed_without_compiler.py train_deepspeed.py", 1)
    return bench.run(text, ACCELERATE_USE_CPU="true")


def difference(bench: Bench, *folders: str) -> str:
    """By how much any weight of the models in two directories differs."""
    program = (
        "import sys, torch; from transformers import AutoModelForCausalLM as M\n"
        "a, b = (M.from_pretrained(f, dtype=torch.float32).state_dict() for f in sys.argv[1:])\n"
        "assert a.keys() == b.keys(), a.keys() ^ b.keys()\n"
        "print(max(float((a[k] - b[k]).abs().max()) for k in a))"
    )
    return bench.run(f"python -c '{program}' {' '.join(folders)}").splitlines()[-1]


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "ddp": ("torchrun", {}),
    "split-and-chunked": ("torchrun", {"layout": SPLIT, "logits": "chunked", "checkpointing": "full"}),
    "one-process": ("torchrun", {"layout": Layout(), "place": ONE, "gradient_accumulation": 4}),
    "accelerate": ("accelerate", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_trains_and_all_launchers_agree(bench, name) -> None:
    key, changes = CASES[name]
    wanted = order(bench, port=31701 + list(CASES).index(name), **changes)
    [loss] = losses(launch(bench, key, wanted, RATE))
    assert loss == pytest.approx(LOSS, rel=0.01)
    assert (bench.folder / "output" / "model" / "model.safetensors").exists()


def test_deepspeed_trains_alike_and_its_checkpoint_is_gathered(bench) -> None:
    wanted = order(bench, SPLIT, port=31710, engine="deepspeed")
    [loss] = losses(launch(bench, "deepspeed", wanted, RATE))
    assert loss == pytest.approx(LOSS, rel=0.01)
    bench.launch(artefact("export", wanted))
    assert float(difference(bench, "output/model", "output/gathered")) < 0.01


def test_a_stopped_run_goes_on_also_on_fewer_gpus_and_its_checkpoint_is_gathered(bench) -> None:
    first = launch(bench, "torchrun", order(bench, SPLIT), f"{RATE} --max-steps=4 --save-every=2 --log-every=1")
    remove(bench, "output/step-4", "output/model")
    alone = order(bench, Layout(zero_stage=3), place=ONE, gradient_accumulation=4)
    second = launch(bench, "torchrun", alone, f"{RATE} --max-steps=4 --log-every=1")
    assert len(losses(first)) == 4
    # Steps 3 and 4 again: the same weights and optimizer, and the sampler's own order for one process.
    assert len(losses(second)) == 2
    assert losses(second)[0] < losses(first)[0]
    bench.launch(artefact("export", alone))
    assert float(difference(bench, "output/gathered", "model")) > 0


def remove(bench: Bench, *gone: str) -> None:
    bench.run(f"rm -r {' '.join(gone)}")


def test_zero_1_goes_on_with_each_ranks_part_of_the_optimizer(bench) -> None:
    wanted = order(bench, Layout(data=2, zero_stage=1))
    whole = losses(launch(bench, "torchrun", wanted, f"{RATE} --max-steps=4 --save-every=2 --log-every=1"))
    remove(bench, "output/step-4", "output/model")
    again = losses(launch(bench, "torchrun", wanted, f"{RATE} --max-steps=4 --log-every=1"))
    assert again == pytest.approx(whole[2:], rel=1e-3)


@pytest.mark.parametrize(("key", "port"), [("torchrun", 31720), ("accelerate", 31730)])
def test_two_nodes_find_each_other(bench, key, port) -> None:
    made = artefact(key, order(bench, port=port, place=NODES))
    bench.write(made)
    nodes = [bench.start(made.commands[0].text + RATE, NODE_RANK=rank, ACCELERATE_USE_CPU="true") for rank in "01"]
    printed = [losses(finish(node)) for node in nodes]
    [loss] = [loss for lines in printed for loss in lines]
    assert loss == pytest.approx(LOSS, rel=0.01)


@pytest.mark.parametrize(("data", "changes"), [("pairs.jsonl", {"packed": False}), ("chats.jsonl", {})])
def test_prompts_and_chats_are_data_too(bench, data, changes) -> None:
    wanted = order(bench, Layout(), data=data, place=ONE, **changes)
    [loss] = losses(launch(bench, "torchrun", wanted, " --max-steps=1"))
    assert 4 < loss < 6


def test_adapters_are_trained_merged_and_judged(bench) -> None:
    wanted = order(bench, method="lora", lora=LORA, checkpointing="full")
    [loss] = losses(launch(bench, "torchrun", wanted, RATE))
    assert loss < 5.56
    bench.launch(artefact("export", wanted))
    assert float(difference(bench, "model", "output/merged")) > 0
    judge = artefact("quantize", serving(model=bench.model, weight_format="awq-int4"))
    bench.write(judge)
    text = (
        judge.commands[1].text.replace("quantized-awq-int4", "output/merged").replace("evaluation.jsonl", "data.jsonl")
    )
    rise = json.loads(bench.run(text).splitlines()[-1])["rise"]
    assert rise < 0
    worse = text.replace(f"--before={bench.model}", "--before=output/merged").replace(
        "--after=output/merged", f"--after={bench.model}"
    )
    process = bench.start(f"{worse} --most-loss=0.00001")
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "keep the larger weights" in errors


def test_hugging_faces_trainer_trains_adapters(bench) -> None:
    wanted = order(bench, method="lora", lora=LORA)
    printed = launch(bench, "huggingface", wanted, " --logging_steps=1 --max_steps=2 --use_cpu")
    assert "train_loss" in printed
    assert (bench.folder / "output" / "model" / "adapter_model.safetensors").exists()
