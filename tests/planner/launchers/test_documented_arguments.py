"""Tools that cannot be installed here: every name that an artefact uses stands in the tool's own list of arguments, kept with its version."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.launchers.base import SCRIPTS, Artefact
from planner.launchers.registry import LAUNCHERS, make_artefact
from tests.planner.launchers.orders import ORDERS, shell_words

LISTS = Path(__file__).resolve().parent.parent / "arguments"
# The program, as the words that its command has before its options, and where its own arguments end.
PROGRAMS = {
    "pretrain_gpt.py": ("megatron_pretrain", None),
    "preprocess_data.py": ("megatron_preprocess", None),
    "colossalai run": ("colossalai_run", "train_colossalai.py"),
    "paddle.distributed.launch": ("paddle_launch", "train_paddle.py"),
    "vllm serve": ("vllm_serve", None),
    "trtllm-serve serve": ("trtllm_serve", None),
    "trtllm-build": ("trtllm_build", None),
    "quantization/quantize.py": ("trtllm_quantize", None),
}


def listed(name: str) -> set[str]:
    lines = (LISTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("# "), "the second line names the source"
    return {line for line in lines if line and not line.startswith("#")}


def artefacts() -> Iterator[Artefact]:
    for launcher in LAUNCHERS.values():
        for order in ORDERS.values():
            made = make_artefact(launcher, order)
            if isinstance(made, Artefact):
                yield made


def options_of(program: str, end: str | None) -> Iterator[str]:
    """The options that commands give this program, as they stand: --name=value."""
    for artefact in artefacts():
        for command in artefact.commands:
            _, found, after = command.text.partition(program)
            if found:
                words = shell_words(after.lstrip('"'))
                yield from (word for word in words[: words.index(end) if end else None] if word.startswith("--"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_is_the_tools_own(program) -> None:
    name, end = PROGRAMS[program]
    used = {word.split("=")[0] for word in options_of(program, end)}
    assert used
    assert used <= listed(name), used - listed(name)


def test_formats_of_tensorrt_llm_are_its_own() -> None:
    formats = {
        f"qformat:{word.split('=')[1]}"
        for word in options_of("quantization/quantize.py", None)
        if word.startswith("--qformat")
    }
    assert len(formats) >= 4
    assert formats <= listed("trtllm_quantize")


def test_plugins_of_colossalai_take_these_arguments() -> None:
    known = listed("colossalai_plugins")
    plugins = set()
    for artefact in artefacts():
        for file in artefact.files:
            if file.name == "plugin.json":
                settings = json.loads(file.text)
                plugins.add(settings["plugin"])
                assert {f"{settings['plugin']}.{name}" for name in settings["arguments"]} <= known
    assert plugins == {"TorchDDPPlugin", "LowLevelZeroPlugin", "GeminiPlugin", "HybridParallelPlugin"}


def calls(script: str) -> Iterator[ast.Call]:
    tree = ast.parse((SCRIPTS / script).read_text(encoding="utf-8"))
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_the_quantization_recipe_uses_names_of_llm_compressor() -> None:
    tree = ast.parse((SCRIPTS / "quantize.py").read_text(encoding="utf-8"))
    modules = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("llmcompressor")
        for alias in node.names
    }
    known, used = listed("llmcompressor"), set()
    for call in calls("quantize.py"):
        if isinstance(call.func, ast.Name) and call.func.id in modules:
            used |= {f"{modules[call.func.id]}:{call.func.id}.{word.arg}" for word in call.keywords if word.arg}
    assert len(used) >= 8
    assert used <= known, used - known


def test_the_conversion_uses_names_of_megatron_bridge() -> None:
    tree = ast.parse((SCRIPTS / "convert.py").read_text(encoding="utf-8"))
    used = {
        f"AutoBridge.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.endswith(("_ckpt", "_pretrained"))
    }
    assert used == listed("megatron_bridge")
