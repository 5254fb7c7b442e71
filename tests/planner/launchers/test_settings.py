"""Settings of every order, read by the tools themselves: argparse, DeepSpeed's configuration, SFTConfig, LoraConfig, Accelerate's FSDP plugin."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.launchers.base import SCRIPTS, Artefact
from planner.launchers.registry import LAUNCHERS, make_artefact
from tests.planner.launchers.conftest import PROGRAMS, Bench
from tests.planner.launchers.orders import TRAINING_ORDERS, shell_words

KEYS = ("torchrun", "accelerate", "deepspeed", "huggingface")
pytestmark = pytest.mark.timeout(300)


def cases() -> dict[str, dict[str, Any]]:
    """By launcher and order: the script, the words that it gets, and its files of settings."""
    found: dict[str, dict[str, Any]] = {}
    for key in KEYS:
        for name, order in TRAINING_ORDERS.items():
            made = make_artefact(LAUNCHERS[key], order)
            if isinstance(made, Artefact):
                words = shell_words(made.commands[0].text)
                start = next(index for index, word in enumerate(words) if word.startswith("train_"))
                settings = {
                    file.name.removesuffix(".json"): file.text for file in made.files if file.name.endswith(".json")
                }
                found[f"{key}/{name}"] = {"script": words[start], "words": words[start + 1 :], **settings}
    return found


def read_by_the_tools(bench: Bench) -> dict[str, dict[str, Any]]:
    for path in SCRIPTS.glob("*.py"):
        (bench.folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    wanted = cases()
    (bench.folder / "cases.json").write_text(json.dumps(list(wanted.values())), encoding="utf-8")
    printed = bench.run(f"python {PROGRAMS}/check_settings.py cases.json")
    return dict(zip(wanted, json.loads(printed.splitlines()[-1]), strict=True))


def test_the_tools_read_what_the_plan_says(bench) -> None:
    found = read_by_the_tools(bench)
    assert len(found) >= 25
    assert found["deepspeed/zero-3-offload"]["deepspeed"] == {
        "stage": 3,
        "offload": "cpu",
        "offload_param": "cpu",
        "bf16": True,
        "fp16": False,
        "micro_batch": 2,
        "accumulation": 2,
    }
    assert found["deepspeed/fp16"]["deepspeed"]["fp16"] is True
    assert found["huggingface/lora"]["lora"] == ["k_proj", "o_proj", "q_proj", "v_proj"]
    assert found["huggingface/zero-2"]["fsdp"]["reshard_after_forward"] == "False"
    assert found["huggingface/zero-3-plain"]["fsdp"]["reshard_after_forward"] == "True"
    assert found["huggingface/qlora"]["optimizer"] == "adamw_bnb_8bit"
    for name, case in found.items():
        order = TRAINING_ORDERS[name.split("/")[1]]
        if "length" in case:
            assert (case["length"], case["packing"], case["bf16"]) == (
                64,
                order.run.packed,
                order.run.compute_dtype == "bf16",
            )
        else:
            assert case["options"]["micro_batch"] == order.run.micro_batch
            assert case["options"]["packed"] is order.run.packed
            assert case["options"]["checkpointing"] is (order.run.checkpointing != "none")
        if "deepspeed" in case:
            assert case["deepspeed"]["stage"] == order.run.layout.zero_stage


PROBE = """
import json
from accelerate.utils import FullyShardedDataParallelPlugin
plugin = FullyShardedDataParallelPlugin()
print(json.dumps({"version": plugin.fsdp_version, "reshard": plugin.reshard_after_forward, "policy": plugin.auto_wrap_policy.__name__}))
"""


@pytest.mark.parametrize(("order", "reshard"), [("zero-2", False), ("zero-3-plain", True)])
def test_accelerate_hands_the_plugin_what_the_file_says(bench, order, reshard) -> None:
    made = make_artefact(LAUNCHERS["accelerate"], TRAINING_ORDERS[order])
    assert isinstance(made, Artefact)
    bench.write(made)
    (bench.folder / "probe.py").write_text(PROBE, encoding="utf-8")
    launcher = made.commands[0].text.split("train_accelerate.py")[0].rstrip(" \\\n")
    printed = bench.run(f"{launcher} --num_processes=1 probe.py")
    assert json.loads(printed.splitlines()[-1]) == {
        "version": 2,
        "reshard": reshard,
        "policy": "transformer_auto_wrap_policy",
    }
