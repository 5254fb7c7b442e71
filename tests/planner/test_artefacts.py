"""The page's commands agree with its software, and no pasted name makes them fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.web.answer import answer
from planner.web.inputs import PlanInput

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "intermediate_size": 11008,
}


def told(**given: Any) -> dict[str, Any]:
    asked = PlanInput(data={"gpu_ids": ["h100-sxm-80"], **given})
    asked.is_valid(raise_exception=True)
    return answer(asked.validated_data)


@pytest.mark.parametrize("name", ["a\nb", "x/\u202eevil", "\u202e", "名" * 500])
def test_a_pasted_name_becomes_a_path_that_a_shell_can_take(name: str) -> None:
    plan = told(config=json.dumps({**CONFIG, "_name_or_path": name}))
    texts = [command["text"] for row in plan["artefacts"] for command in row["commands"]]
    assert texts
    assert all(letter.isprintable() or letter == "\n" for text in texts for letter in text)


@pytest.mark.parametrize("given", [{}, {"method": "full"}, {"work": "serving"}, {"gpu_ids": ["b200-sxm-180"]}])
def test_the_software_is_what_the_script_installs(given: dict[str, Any]) -> None:
    plan = told(**given)
    [script] = [file["text"] for file in plan["artefacts"][0]["files"] if file["name"] == "install.sh"]
    assert f"torch {plan['software']['torch']} ({plan['software']['cuda_tag']})" in script.splitlines()[1]


def test_megatron_is_told_the_steps_that_the_plan_counted() -> None:
    given = {"model": "meta-llama/Meta-Llama-3.1-70B", "method": "full", "sequence_length": 4096, "global_batch": 128}
    plan = told(**given, samples=64_000, tokens_per_sample=1000, epochs=2)
    [megatron] = [each for each in plan["artefacts"] if each["launcher"] == "megatron"]
    start = megatron["commands"][-1]["text"]
    # 64,000 x 2 samples of 1,000 tokens, 128 sequences of 4,096 tokens a step.
    assert "--train-iters=245" in start
    assert "TRAIN_STEPS" not in start
