"""What holds for every launcher and every order: fits or says why, complete files, commands that bash reads, words for people."""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
from dataclasses import replace

import pytest
from django.utils import translation

import planner.launchers
from planner.launchers.base import LaunchError, ServingOrder, TrainingOrder
from planner.launchers.registry import LAUNCHERS, make_artefact, make_artefacts
from planner.reasons import Reason
from planner.web.words import sentence
from tests.planner.launchers.orders import ORDERS, TRAINING_ORDERS, serving, shell_words, training

# Modules of the package that are no launchers.
HELPERS = {"base", "environment", "packages", "registry", "training", "scripts"}


def test_every_module_is_a_registered_launcher() -> None:
    modules = {module.name for module in pkgutil.iter_modules(planner.launchers.__path__)}
    assert modules - HELPERS == set(LAUNCHERS)


@pytest.fixture(params=[(key, name) for key in LAUNCHERS for name in ORDERS], ids="-".join)
def made(request):
    key, name = request.param
    return make_artefact(LAUNCHERS[key], ORDERS[name])


def test_it_fits_or_says_why(made) -> None:
    if isinstance(made, Reason):
        assert made.key.startswith("launch.unfit.")
        assert sentence(made)


def test_commands_and_scripts_are_bash(made) -> None:
    if isinstance(made, Reason):
        return
    texts = [command.text for command in made.commands] + [
        file.text for file in made.files if file.name.endswith(".sh")
    ]
    assert made.commands
    for text in texts:
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        # The first words are assignments; what follows is a program and its arguments.
        assert shell_words(text)


def test_files_are_complete(made) -> None:
    if isinstance(made, Reason):
        return
    names = [file.name for file in made.files]
    assert len(set(names)) == len(names)
    for file in made.files:
        if file.name.endswith(".py"):
            ast.parse(file.text)
        if file.name.endswith(".json"):
            json.loads(file.text)
    for command in made.commands:
        for word in shell_words(command.text):
            value = word.split("=")[-1]
            if value.endswith((".py", ".sh", ".json", ".yaml")) and "/" not in value:
                assert value in names, word


def test_every_note_has_words_in_both_languages(made) -> None:
    said = [made] if isinstance(made, Reason) else [*made.notes, *(command.note for command in made.commands)]
    for language in ("en", "zh-hans"):
        with translation.override(language):
            assert all("%(" not in sentence(each) for each in said)


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        (
            "training-ddp",
            {"torchrun", "huggingface", "accelerate", "deepspeed", "megatron", "colossalai", "paddle", "export"},
        ),
        (
            "training-zero-3-plain",
            {"torchrun", "huggingface", "accelerate", "deepspeed", "colossalai", "paddle", "export"},
        ),
        ("training-zero-1", {"torchrun", "deepspeed", "megatron", "colossalai", "paddle", "export"}),
        ("training-qlora", {"torchrun", "huggingface", "accelerate", "deepspeed", "export"}),
        ("training-offload", {"huggingface", "export"}),
        ("training-fp16", {"deepspeed", "colossalai", "paddle", "export"}),
        ("training-zero-3", {"torchrun", "huggingface", "export"}),
        ("training-tensor", {"megatron", "colossalai", "paddle", "export"}),
        ("training-pipeline", {"megatron", "colossalai", "export"}),
        ("training-mixture", {"megatron", "export"}),
        ("serving-tensor", {"vllm", "tensorrt_llm"}),
        ("serving-fp8", {"vllm", "tensorrt_llm", "quantize"}),
        ("serving-nodes", {"vllm"}),
        ("serving-int8", {"tensorrt_llm", "quantize"}),
    ],
)
def test_which_launchers_suit_which_layout(order, keys) -> None:
    fitting = {key for key, made in make_artefacts(ORDERS[order]).items() if not isinstance(made, Reason)}
    assert fitting == keys


NASTY = ["a b", "it's", "$(touch owned)", "`id`", "x; rm -rf .", 'quote"d', "a&b|c>d", "模型", "*", "~", "#no"]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("key", LAUNCHERS)
def test_what_a_person_typed_stays_one_word(key, text) -> None:
    order = (
        training(model=text, dataset=text)
        if LAUNCHERS[key].unfit(training()) is None
        else serving(model=text, name=text, weight_format="fp8")
    )
    made = make_artefact(LAUNCHERS[key], order)
    assert not isinstance(made, Reason)
    words = [word for command in made.commands for word in shell_words(command.text)]
    assert any(word == text or word.endswith(f"={text}") for word in words)
    for command in made.commands:
        echoed = (
            command.text.replace("${MEGATRON:?", "${MEGATRON:=")
            .replace("${TENSORRT_LLM:?", "${TENSORRT_LLM:=")
            .replace("${TRAIN_STEPS:?", "${TRAIN_STEPS:=")
            .replace("${API_KEY:?", "${API_KEY:=")
        )
        # bash itself must see the same words: the program is replaced by one that prints its arguments.
        seen = subprocess.run(
            ["bash", "-c", f"print() {{ printf '%s\\0' \"$@\"; }}\nprint {echoed}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert seen.stderr == ""
        theirs = [word for word in shell_words(command.text) if text in word]
        assert all(word in seen.stdout.split("\0") for word in theirs)


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("model", "", "launch.error.empty"),
        ("model", "--config=/etc/passwd", "launch.error.dash"),
        ("dataset", "a\nb", "launch.error.unprintable"),
        ("dataset", "a\0b", "launch.error.unprintable"),
        ("output", "x" * 1001, "launch.error.unprintable"),
    ],
)
def test_bad_text_is_refused_by_field(field, value, key) -> None:
    with pytest.raises(LaunchError) as caught:
        training(**{field: value})
    assert (caught.value.field, caught.value.problem.key) == (field, key)
    assert sentence(caught.value.problem)


@pytest.mark.parametrize(
    ("field", "changes", "key"),
    [
        ("hosts", {"hosts": ("node-a", "node b")}, "launch.error.host"),
        ("hosts", {"hosts": ("node-a", "$(id)")}, "launch.error.host"),
        ("hosts", {"hosts": ("-oProxyCommand=id",)}, "launch.error.host"),
        ("hosts", {"hosts": ("node-a", "node-b", "node-c")}, "launch.error.gpus"),
        ("gpus_per_node", {"gpus_per_node": 0}, "launch.error.count"),
        ("port", {"port": 80}, "launch.error.port"),
        ("driver", {"driver": "newest"}, "launch.error.driver"),
        ("interface", {"interface": "-x"}, "launch.error.dash"),
    ],
)
def test_bad_places_are_refused_by_field(field, changes, key) -> None:
    order = TRAINING_ORDERS["ddp"]
    with pytest.raises(LaunchError) as caught:
        replace(order, place=replace(order.place, **changes))
    assert (caught.value.field, caught.value.problem.key) == (field, key)


def test_both_kinds_of_order_are_covered() -> None:
    kinds = {type(order) for order in ORDERS.values()}
    assert kinds == {TrainingOrder, ServingOrder}
    for key, launcher in LAUNCHERS.items():
        assert sum(launcher.unfit(order) is None for order in ORDERS.values()) >= 4, key
