"""Providers' own libraries: optional, named the same everywhere, and not there before an account of theirs is used."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fleet.providers import alibaba_client, google_api, tencent_client
from fleet.providers.base import InstanceState
from fleet.providers.errors import Invalid, NotFound, WrongState
from fleet.providers.http import SilentError
from fleet.providers.sdk import read_again, sdk, unless_so

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("alibabacloud_", "azure", "boto", "darabonba", "google.auth", "google.oauth2", "tencentcloud")
REQUIREMENTS = {
    "alibaba": alibaba_client.REQUIREMENT,
    "google": google_api.REQUIREMENT,
    "tencent": tencent_client.REQUIREMENT,
}


def test_the_command_that_is_told_installs_what_the_extra_does():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {kind: extras[kind] for kind in REQUIREMENTS} == {kind: [one] for kind, one in REQUIREMENTS.items()}
    assert set(REQUIREMENTS.values()) <= set(extras["dev"])


def test_finding_the_adapters_imports_none_of_them():
    """What a worker does at start; some of them take a second and fifty megabytes each."""
    program = f"""
import sys
from fleet.providers.registry import adapters
assert len(adapters()) > 10
print([name for name in sys.modules if name.startswith({HEAVY!r})])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_library_that_is_not_there_is_told_with_the_command():
    with pytest.raises(Invalid, match=r'Acme.*\.venv/bin/python -m pip install "acme>=1" "acme-core"'):
        sdk("Acme", "no_such_module_of_acme", "acme>=1", "acme-core")


def test_a_read_is_tried_twice_and_not_for_ever():
    tries = []

    def fail() -> None:
        tries.append(1)
        raise SilentError("nobody")

    with pytest.raises(SilentError):
        read_again(fail)
    assert len(tries) == 2


def wrong_state() -> None:
    raise WrongState("not now")


def test_what_is_so_already_is_no_error(made_machine):
    stopped = made_machine(InstanceState.STOPPED)
    assert unless_so(wrong_state, lambda: stopped, InstanceState.STOPPED) is stopped
    with pytest.raises(WrongState):
        unless_so(wrong_state, lambda: stopped, InstanceState.RUNNING)
    with pytest.raises(NotFound):
        unless_so(wrong_state, lambda: None, InstanceState.STOPPED)
    assert unless_so(lambda: None, lambda: stopped, InstanceState.STOPPED) is None


@pytest.fixture
def made_machine():
    from fleet.providers.base import Billing, ProviderInstance, Ref

    return lambda state: ProviderInstance(ref=Ref("i-1"), name="a", state=state, raw_state="", billing=Billing.UNKNOWN)
