"""Processes on a GPU: host ids, impossible ids, lists that grow, memory that is not told."""

from __future__ import annotations

from pathlib import Path

from tests.agent.nvml_session import kinds, one_sample, running
from tests.fakes.nvml.library import FakeNvml

ALL_ONES = 2**64 - 1


def with_processes(*rows: tuple[int, int]) -> FakeNvml:
    library = FakeNvml("h100")
    library.devices[0].processes = list(rows)
    return library


def test_names_are_looked_up_where_process_ids_are_the_hosts(machine: Path) -> None:
    (machine / "proc/42").mkdir()
    (machine / "proc/42/comm").write_text("python\n")
    gpu = one_sample(with_processes((42, 1000), (43, 500)), root=f"{machine}/")["gpus"][0]
    assert gpu["processes"] == [
        {"pid": 42, "resolved": True, "memory_bytes": 1000, "name": "python"},
        {"pid": 43, "resolved": False, "memory_bytes": 500},
    ]
    assert gpu["process_memory_bytes"] == 1500


def test_users_are_named_by_the_machines_own_list(machine: Path) -> None:
    (machine / "etc").mkdir(exist_ok=True)
    (machine / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nada:x:1001:1001::/home/ada:/bin/sh\n")
    for pid, uid in ((42, 1001), (43, 5000)):
        (machine / f"proc/{pid}").mkdir()
        (machine / f"proc/{pid}/comm").write_text("python\n")
        (machine / f"proc/{pid}/status").write_text(f"Name:\tpython\nUid:\t{uid}\t0\t0\t0\nGid:\t0\t0\t0\t0\n")
    gpu = one_sample(with_processes((42, 1000), (43, 500)), root=f"{machine}/")["gpus"][0]
    assert [row["user"] for row in gpu["processes"]] == ["ada", "5000"]
    (machine / "etc/passwd").write_text("grace:x:5000:5000::/home/grace:/bin/sh\n")
    gpu = one_sample(with_processes((43, 500)), root=f"{machine}/")["gpus"][0]
    assert gpu["processes"][0]["user"] == "grace"


def test_no_user_is_looked_up_across_process_id_namespaces(machine: Path) -> None:
    (machine / "proc/42").mkdir()
    (machine / "proc/42/comm").write_text("innocent\n")
    (machine / "proc/42/status").write_text("Uid:\t1001\t1001\t1001\t1001\n")
    gpu = one_sample(with_processes((42, 1000)), root=f"{machine}/", host_ids=False)["gpus"][0]
    assert "user" not in gpu["processes"][0]


def test_no_name_is_looked_up_across_process_id_namespaces(machine: Path) -> None:
    """Inside a container 42 is another process than the one that NVML means."""
    (machine / "proc/42").mkdir()
    (machine / "proc/42/comm").write_text("innocent\n")
    gpu = one_sample(with_processes((42, 1000)), root=f"{machine}/", host_ids=False)["gpus"][0]
    assert gpu["processes"] == [{"pid": 42, "resolved": False, "memory_bytes": 1000}]
    assert gpu["process_count"] == 1


def test_an_empty_list_in_a_container_is_not_no_process() -> None:
    gpu = one_sample(with_processes(), host_ids=False)["gpus"][0]
    assert "process_count" not in gpu
    assert gpu["unavailable"]["process_count"] == "pid_namespace"


def test_an_empty_list_on_the_host_is_no_process() -> None:
    assert one_sample(with_processes())["gpus"][0]["process_count"] == 0


def test_impossible_process_ids_are_dropped_and_the_list_called_unreliable_once() -> None:
    """Drivers 535.43 to 535.98 fill the structure in another layout."""
    with running(with_processes((0, 5), (4294967295, 7), (900, 11))) as session:
        message = session.sample()
        assert [row["pid"] for row in message["gpus"][0]["processes"]] == [900]
        assert kinds(message) == ["process_list_unreliable"]
        assert "2 rows" in message["events"][0]["detail"]
        assert kinds(session.sample()) == []


def test_memory_that_is_not_told_makes_the_sum_unknown_not_smaller() -> None:
    gpu = one_sample(with_processes((900, ALL_ONES), (901, 100)))["gpus"][0]
    assert gpu["process_count"] == 2
    assert "process_memory_bytes" not in gpu
    assert {"pid": 900, "resolved": False} in gpu["processes"]


def test_a_list_that_grows_between_two_calls_is_asked_for_again() -> None:
    library = with_processes((900, 1))
    library.devices[0].said["processes_grow"] = [(1000 + number, 1) for number in range(20)]
    assert one_sample(library)["gpus"][0]["process_count"] == 21


def test_old_drivers_are_asked_with_the_second_version() -> None:
    gpu = one_sample(FakeNvml("a100-old-driver"))["gpus"][0]
    assert gpu["process_count"] == 1


def test_at_most_64_processes_the_largest_ones() -> None:
    gpu = one_sample(with_processes(*((1000 + number, number) for number in range(100))))["gpus"][0]
    assert gpu["process_count"] == 100
    assert len(gpu["processes"]) == 64
    assert gpu["processes"][0]["memory_bytes"] == 99
