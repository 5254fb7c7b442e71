"""One GPU that is lost costs itself only, and somebody is told."""

from __future__ import annotations

import json

from agent.known_gpus import KnownGpus
from agent.nvml.calls import GPU_IS_LOST, RESET_REQUIRED
from tests.agent.nvml_session import by_uuid, kinds, one_sample, running
from tests.fakes.nvml.library import FakeNvml

HANDLE = "nvmlDeviceGetHandleByIndex_v2"


def lose(library: FakeNvml, place: int) -> str:
    uuid = str(library.devices[place].said["uuid"])
    library.fail["", uuid] = library.fail[HANDLE, uuid] = GPU_IS_LOST
    return uuid


def test_a_gpu_that_is_lost_while_running_leaves_the_others_in_place() -> None:
    library = FakeNvml("h100x8")
    with running(library) as session:
        whole = session.sample()
        uuid = lose(library, 3)
        message = session.sample()
        assert by_uuid(message)[uuid] == {"uuid": uuid, "state": "lost"}
        others = [gpu for gpu in message["gpus"] if gpu["uuid"] != uuid]
        assert len(others) == len(whole["gpus"]) - 1
        assert all(gpu["state"] == "ok" and "power_watts" in gpu for gpu in others)
        assert kinds(message) == ["gpu_lost"]


def test_a_lost_gpu_stays_lost_without_a_second_event_and_comes_back_with_one() -> None:
    library = FakeNvml("h100x8")
    with running(library) as session:
        session.sample()
        uuid = lose(library, 0)
        session.sample()
        message = session.sample()
        assert by_uuid(message)[uuid]["state"] == "lost"
        assert "gpu_lost" not in kinds(message)
        library.fail.clear()
        back = session.sample()
        assert by_uuid(back)[uuid]["state"] == "ok"
        assert kinds(back) == ["gpu_back"]


def test_a_gpu_lost_before_the_start_is_counted() -> None:
    library = FakeNvml("h100x8")
    lose(library, 2)
    message = one_sample(library)
    assert len(message["gpus"]) == 7
    assert kinds(message) == ["gpu_count_changed"]
    assert "1 of 8 GPUs cannot be read (index 2: gpu_is_lost)" in message["detail"]


def test_a_null_handle_is_never_passed_into_the_library() -> None:
    """The stand-in fails the test where C would crash."""
    library = FakeNvml("h100x8")
    library.devices[1].said["null_handle"] = True
    message = one_sample(library)
    assert len(message["gpus"]) == 7
    assert "null_handle" in message["detail"]


def test_a_gpu_that_vanished_from_the_count_is_an_event() -> None:
    library = FakeNvml("h100x8")
    with running(library) as session:
        session.sample()
        gone = library.devices.pop()
        message = session.sample(after_seconds=120)
        assert "gpu_count_changed" in kinds(message)
        assert by_uuid(message)[gone.said["uuid"]]["state"] == "lost"


def test_reset_required_is_told_once_and_keeps_the_other_values() -> None:
    library = FakeNvml("h100")
    uuid = library.devices[0].said["uuid"]
    library.fail["nvmlDeviceGetTotalEccErrors", uuid] = RESET_REQUIRED
    with running(library) as session:
        message = session.sample()
        assert kinds(message) == ["reset_required"]
        assert message["gpus"][0]["unavailable"]["ecc_corrected"] == "reset_required"
        assert message["gpus"][0]["power_watts"] > 600
        assert kinds(session.sample()) == []


def test_a_recovery_action_asks_for_a_reset_without_any_xid() -> None:
    library = FakeNvml("h100")
    library.devices[0].values["field.230"] = 1
    assert kinds(one_sample(library)) == ["reset_required"]


def test_a_gpu_missing_since_an_earlier_start_of_this_boot_is_still_missed(tmp_path) -> None:
    path = str(tmp_path / "gpus.json")
    told: list[dict[str, object]] = []
    rows = [{"uuid": "GPU-a", "index": 0, "name": "A"}, {"uuid": "GPU-b", "index": 1, "name": "B"}]
    KnownGpus(path, "boot-1").learn(rows, told.append)
    again = KnownGpus(path, "boot-1")
    assert {row["uuid"] for row in again.learn(rows[:1], told.append)} == {"GPU-a", "GPU-b"}
    assert [(event["kind"], event["gpu"]) for event in told] == [("gpu_lost", "GPU-b")]
    assert again.lost_rows() == [{"uuid": "GPU-b", "state": "lost"}]
    again.learn(rows, told.append)
    assert told[-1]["kind"] == "gpu_back"
    assert again.lost_rows() == []


def test_another_boot_may_bring_other_gpus(tmp_path) -> None:
    path = str(tmp_path / "gpus.json")
    told: list[dict[str, object]] = []
    KnownGpus(path, "boot-1").learn([{"uuid": "GPU-a", "index": 0, "name": "A"}], told.append)
    KnownGpus(path, "boot-2").learn([{"uuid": "GPU-c", "index": 0, "name": "C"}], told.append)
    assert told == []


def test_removed_mig_instances_are_not_missed() -> None:
    library = FakeNvml("h100-mig")
    with running(library) as session:
        session.sample()
        library.devices[0].migs.pop()
        message = session.sample(after_seconds=120)
        assert len(message["gpus"]) == 4
        assert kinds(message) == []
        assert json.dumps(message)
