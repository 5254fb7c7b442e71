"""What is read in the background: left out when it is old, and a probe that hangs costs only its own values."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agent.host import filesystems
from agent.host.slow import FRESH_SECONDS, SlowProbes


@pytest.fixture
def probes(machine: Path) -> SlowProbes:
    (machine / "proc/self").mkdir()
    (machine / "proc/self/mounts").write_text("/dev/sda1 / ext4 rw 0 0\n")
    (machine / "proc/1").mkdir()
    (machine / "proc/1/stat").write_text("")
    return SlowProbes(f"{machine}/")


def test_values_are_given_while_they_are_fresh(probes: SlowProbes) -> None:
    probes.refresh_once(1000.0)
    values = probes.values(1000.0 + FRESH_SECONDS)
    assert values["ssh_sessions"] == 0
    assert values["filesystem_total_bytes"] > 0  # type: ignore[operator]


def test_a_value_that_was_not_refreshed_is_gone(probes: SlowProbes) -> None:
    probes.refresh_once(1000.0)
    assert probes.values(1001.0 + FRESH_SECONDS) == {}


def test_nothing_is_given_before_the_first_reading(probes: SlowProbes) -> None:
    assert probes.values(1000.0) == {}
    assert probes.environment() == {}


def test_a_probe_that_fails_keeps_the_others(probes: SlowProbes, machine: Path) -> None:
    (machine / "proc/self/mounts").unlink()
    probes.refresh_once(1000.0)
    assert probes.values(1000.0) == {"ssh_sessions": 0, "jupyter_kernels": 0}


def test_a_network_file_system_that_hangs_takes_only_its_own_figures_with_it(
    probes: SlowProbes, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, rows = threading.Event(), filesystems.rows

    def asked(root: str, kinds: frozenset[str]) -> list[dict[str, object]]:
        if kinds is filesystems.NETWORK:
            hangs.wait(60)
        return rows(root, kinds)

    monkeypatch.setattr(filesystems, "rows", asked)
    waiting = threading.Thread(target=probes._network.refresh, args=(1000.0,))
    waiting.start()
    probes.refresh_once(1000.0)
    assert [row["mount"] for row in probes.values(1000.0)["filesystems"]] == ["/"]  # type: ignore[attr-defined]
    hangs.set()
    waiting.join(10)
