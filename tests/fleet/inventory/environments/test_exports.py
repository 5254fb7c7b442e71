"""An environment as files: what can be installed is in them, and no text of a machine reaches a shell."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

from fleet.inventory.environments.exports.dockerfile import dockerfile
from fleet.inventory.environments.exports.packages import environment_yml, requirements_txt, verify_lines
from fleet.inventory.environments.exports.recipe import recipe_of
from fleet.inventory.environments.exports.setup_script import setup_script
from fleet.inventory.environments.versions import Source, collect
from tests.fleet.inventory.environments.conftest import FOUND, NOON

HOSTILE = ["$(touch pwned)", "1.0; touch pwned", "`touch pwned`", "1'\"; touch pwned #", "1\ntouch pwned", "-r /etc/passwd", "1.0+cu128$(id)"]  # fmt: skip


def recipe(**differing):
    return recipe_of(collect([Source("reported", NOON, "train-01", {**FOUND, **differing})]), title="vision 2.4")


def parses(script: str) -> bool:
    return subprocess.run(["bash", "-n"], input=script, text=True, check=False, capture_output=True).returncode == 0


def runs_of(text: str) -> str:
    """The shell of a Dockerfile."""
    joined = text.replace("\\\n", " ")
    return "\n".join(line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN "))


def requirement_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith(("#", "--"))]


def test_requirements_are_pinned_and_ask_for_no_index_that_the_default_has():
    text = requirements_txt(recipe())
    assert requirement_lines(text) == ["torch==2.8.0", "flash-attn==2.8.3", "vllm==0.11.0"]
    assert "INDEX_URL" not in text


def test_another_build_asks_for_the_address_of_its_index():
    text = requirements_txt(
        recipe(frameworks={"torch": "2.8.0+cu126", "torchvision": "0.23.0+cu126", "vllm": "0.11.0"})
    )
    assert requirement_lines(text) == ["torch==2.8.0+cu126", "torchvision==0.23.0+cu126", "vllm==0.11.0"]
    assert "--extra-index-url ${TORCH_INDEX_URL}" in text
    assert "# Set TORCH_INDEX_URL to the address of the wheel index of PyTorch for cu126" in text


def test_conda_reads_the_environment():
    read = yaml.safe_load(environment_yml(recipe(), name='a "b": {c}'))
    assert read["name"] == 'a "b": {c}'
    assert read["dependencies"][0] == "python=3.11"
    assert read["dependencies"][-1] == {"pip": ["torch==2.8.0", "flash-attn==2.8.3", "vllm==0.11.0"]}


def test_the_dockerfile_starts_from_the_same_cuda_without_a_driver():
    text = dockerfile(recipe(python="3.10.2"))
    assert "ARG BASE_IMAGE=nvidia/cuda:12.8.1-devel-ubuntu22.04" in text
    assert "python3 -m venv /opt/environment" in text
    assert "driver" not in runs_of(text)
    assert "ubuntu24.04" in dockerfile(recipe(python="3.12.1"))


def test_a_python_that_no_system_has_comes_from_miniconda():
    assert "conda create -y -p /opt/environment python=3.11 pip" in dockerfile(recipe())


def test_the_script_installs_driver_toolkit_python_and_packages_in_that_order():
    text = setup_script(recipe(cuda="12.8"))
    wanted = ["nvidia-open-570", "installs cuda-toolkit-12-8", "libcudnn9-dev-cuda-12", "python3.11 -m venv", "torch==2.8.0", "vllm==0.11.0", "torch.version.cuda == '12.8'", "pip check"]  # fmt: skip
    places = [text.find(each) for each in wanted]
    assert -1 not in places
    assert places == sorted(places)
    assert "installs cuda " not in text


def test_an_older_driver_branch_has_no_open_package():
    assert "cuda-drivers-535" in setup_script(recipe(driver="535.104.05"))


def test_what_somebody_built_themselves_is_left_out_and_said():
    text = requirements_txt(recipe(frameworks={"torch": "2.9.0a0+50eac811a6.nv25.09", "vllm": "0.11.0"}))
    assert requirement_lines(text) == ["vllm==0.11.0"]
    assert "Left out, because their versions cannot be installed by name: torch." in text


def test_nothing_known_is_still_a_script():
    empty = recipe_of(collect([]), title="x")
    assert parses(setup_script(empty))
    assert parses(runs_of(dockerfile(empty)))
    assert "FROM" in dockerfile(empty)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_versions_reach_no_shell(text, tmp_path):
    found = recipe(
        driver=text, cuda=text, cudnn=text, python=text, frameworks={"torch": text, "vllm": text, text: text}
    )
    for made in (setup_script(found), runs_of(dockerfile(found)), "\n".join(verify_lines(found))):
        assert "touch" not in made
        assert "/etc/passwd" not in made
        assert parses(made)
    assert requirement_lines(requirements_txt(found)) == []
    assert yaml.safe_load(environment_yml(found, name=text))["name"] == text


versions = st.one_of(st.text(max_size=30), st.from_regex(r"\A[0-9][0-9A-Za-z.!+_-]{0,20}\Z"))


@settings(max_examples=60, deadline=None)
@given(driver=versions, cuda=versions, python=versions, cudnn=versions, packages=st.dictionaries(st.text(max_size=20) | st.sampled_from(["torch", "vllm", "flash_attn", "tensorrt_llm"]), versions, max_size=5))  # fmt: skip
def test_whatever_is_reported_every_line_is_a_requirement(driver, cuda, python, cudnn, packages):
    found = recipe(driver=driver, cuda=cuda, python=python, cudnn=cudnn, frameworks=packages)
    for line in requirement_lines(requirements_txt(found)):
        assert str(Requirement(line).specifier).startswith("==")
    yaml.safe_load(environment_yml(found, name="x"))


@settings(max_examples=15, deadline=None)
@given(driver=versions, cuda=versions, python=versions, packages=st.dictionaries(st.sampled_from(["torch", "vllm", "a b", "x$(id)"]), versions, max_size=4))  # fmt: skip
def test_whatever_is_reported_the_shell_can_read_it(driver, cuda, python, packages):
    found = recipe(driver=driver, cuda=cuda, python=python, frameworks=packages)
    assert parses(setup_script(found) + runs_of(dockerfile(found)))
