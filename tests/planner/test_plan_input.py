"""What a plan may be asked with: every wrong value is refused by the name of its field, and nothing else."""

from __future__ import annotations

import json

import pytest

from planner.catalogue.models import models
from planner.catalogue.shape_text import LONGEST_LINE, shape_of, text_of
from planner.web.inputs import PlanInput, shape_of_input

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
NO_NUMBERS = ["x", "", -1, 10**30, "9" * 400, float("nan"), "NaN", "Infinity", True, [1], {"a": 1}]
NUMBERS = ["sequence_length", "global_batch", "samples", "epochs", "tokens_per_sample", "lora_rank", "concurrency"]
NUMBERS += ["prompt_tokens", "output_tokens", "memory_utilization", "most_gpus", "years", "utilization", "pue"]
OPTIONAL = ["count", "budget", "deadline_hours", "max_model_len", "first_token_seconds", "price_per_gpu_hour"]


def refusals(data: object) -> dict[str, list[str]]:
    asked = PlanInput(data=data)
    asked.is_valid()
    return {name: [str(text) for text in said] for name, said in asked.errors.items()}


def test_nothing_at_all_asks_for_the_usual_plan() -> None:
    assert refusals({}) == {}


@pytest.mark.parametrize("name", NUMBERS + OPTIONAL)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_in_range_is_refused_by_the_name_of_its_field(name: str, value: object) -> None:
    [(field, [text])] = refusals({name: value}).items()
    assert field == name
    assert text.startswith(("Give a number from ", "Give a whole number from "))


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_nobody_has_to_say_may_be_null(name: str) -> None:
    assert refusals({name: None}) == {}


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("work", "mining", "training, serving"),
        ("method", "magic", "full, lora, qlora"),
        ("gpu", "h1000", "h100-sxm-80"),
        ("gpu_ids", ["h1000"], "“h1000” is not known here"),
        ("gpu_ids", "h100-sxm-80", "Give a list"),
        ("price_kinds", ["stolen"], "“stolen”"),
        ("packed", "maybe", "true or false"),
        ("link", "string", "infiniband-400"),
        ("driver", "new", "550.54.15"),
        ("driver", "550.54.15.1", "550.54.15"),
        ("model", "meta-llama/Llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("model", "x" * 300, "200 characters"),
        ("samplse", 1, "`samples`"),
    ],
)
def test_an_unknown_word_is_refused_with_what_would_do(name: str, value: object, part: str) -> None:
    [(field, [text])] = refusals({name: value}).items()
    assert field == name
    assert part in text


@pytest.mark.parametrize(
    ("config", "part"),
    [
        (json.dumps(LLAMA)[:60], "This is no JSON from line 1"),
        ("[" * 100_000, "nested too deeply"),
        ("x" * 1_000_001, "longer than 1000000 characters"),
        ([1], "no object"),
        ({**LLAMA, "model_type": "warp-drive"}, "warp-drive is not an architecture"),
        ({**LLAMA, "hidden_size": -4096}, "hidden_size is -4096"),
        ({**LLAMA, "hidden_size": 10**12}, "hidden_size is 1000000000000"),
        ({**LLAMA, "num_hidden_layers": "32"}, 'num_hidden_layers is "32": it has to be a number'),
        ({**LLAMA, "num_key_value_heads": 7}, "num_key_value_heads"),
    ],
    ids=["truncated", "deep", "long", "list", "unknown", "negative", "absurd", "text for a number", "no divisor"],
)
def test_a_config_that_cannot_be_says_which_of_its_fields(config: object, part: str) -> None:
    [(field, [text])] = refusals({"config": config}).items()
    assert field == "config"
    assert part in text


@pytest.mark.parametrize(
    ("shape", "part"),
    [
        ("layers=32", "heads is missing"),
        ("layers=32,hidden=4096,heads=0,intermediate=1,vocab=1", "heads is 0"),
        ("layers=99999,hidden=4096,heads=32,intermediate=1,vocab=1", "layers is 99999"),
        ("layers=two,hidden=4096,heads=32,intermediate=1,vocab=1", 'layers is "two"'),
        ("layers=2,hidden=4097,heads=32,intermediate=1,vocab=1", "hidden 4097 cannot be divided"),
        ("layers=2,hidden=4096,heads=32,kv_heads=5,intermediate=1,vocab=1", "kv_heads 5 does not divide"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,experts=8/9/1", "experts is 8/9/1"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,latent=1/0/1/1/1", "latent is 1/0/1/1/1"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,sliding=x", "sliding is x"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,sliding=0", "sliding is 0"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,positions=gps", "positions is gps"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,bias=maybe", "bias"),
        ("layers=2,hidden=4096,heads=32,intermediate=1,vocab=1,name=<b>", "name may hold letters"),
        ("layers:2", "“layers:2” is no part of a shape"),
        ("x" * (LONGEST_LINE + 1), "characters"),
    ],
)
def test_a_typed_shape_that_cannot_be_says_which_of_its_parts(shape: str, part: str) -> None:
    [(field, [text])] = refusals({"shape": shape}).items()
    assert field == "shape"
    assert part in text


@pytest.mark.parametrize("name", list(models()))
def test_every_shape_of_the_catalogue_survives_an_address(name: str) -> None:
    shape = models()[name].shape
    assert shape_of(text_of(shape)) == shape
    assert len(text_of(shape)) < 300


def test_a_config_goes_before_a_shape_and_that_before_a_model() -> None:
    shape = "layers=2,hidden=64,heads=4,intermediate=128,vocab=1000"
    asked = PlanInput(data={"config": LLAMA, "shape": shape, "model": "Qwen/Qwen2.5-7B"})
    assert asked.is_valid()
    given = asked.validated_data
    assert shape_of_input(given).hidden == 4096
    assert shape_of_input({**given, "config": ""}).hidden == 64
    assert shape_of_input({**given, "config": "", "shape": ""}).name == "Qwen2.5-7B"


def test_a_context_too_short_for_prompt_and_answer_is_refused() -> None:
    [(field, [text])] = refusals({"work": "serving", "max_model_len": 1000, "prompt_tokens": 1000}).items()
    assert field == "max_model_len"
    assert "1300" in text
