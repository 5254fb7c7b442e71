"""XID errors are events: each once, with its number and GPU, also when the same one comes again."""

from __future__ import annotations

from tests.agent.nvml_session import kinds, running
from tests.fakes.nvml.library import FakeNvml


def test_two_equal_xids_are_two_events() -> None:
    library = FakeNvml("h100x8")
    uuid = library.devices[5].said["uuid"]
    with running(library) as session:
        session.sample()
        library.events += [(uuid, 79), (uuid, 79)]
        events = session.sample()["events"]
        assert [(event["kind"], event["gpu"], event["code"]) for event in events] == [("xid", uuid, 79)] * 2
        assert session.sample()["events"] == []


def test_an_xid_just_before_gpus_are_looked_for_again_is_not_lost() -> None:
    library = FakeNvml("h100x8")
    uuid = library.devices[5].said["uuid"]
    with running(library) as session:
        session.sample()
        library.events.append((uuid, 48))
        gone = library.devices.pop()
        message = session.sample(after_seconds=120)
        assert gone.said["uuid"] != uuid
        assert [event["code"] for event in message["events"] if event["kind"] == "xid"] == [48]


def test_errors_from_before_the_start_are_a_figure_not_an_event() -> None:
    library = FakeNvml("h100")
    library.devices[0].values["ecc.uncorrected"] = 5
    with running(library) as session:
        message = session.sample()
        assert message["gpus"][0]["ecc_uncorrected"] == 5
        assert kinds(message) == []


def test_a_driver_without_events_is_sampled_all_the_same() -> None:
    library = FakeNvml("h100")
    library.fail["nvmlEventSetCreate", ""] = 3
    with running(library) as session:
        assert session.sample()["gpus"][0]["state"] == "ok"


def test_more_uncorrected_errors_are_an_event() -> None:
    library = FakeNvml("h100")
    with running(library) as session:
        session.sample()
        library.devices[0].values["ecc.uncorrected"] = 2
        message = session.sample()
        assert kinds(message) == ["ecc_uncorrected"]
        assert message["events"][0]["code"] == 2
        assert kinds(session.sample()) == []


def test_a_failed_row_remap_is_told_once() -> None:
    library = FakeNvml("h100")
    library.devices[0].values["remapped.failed"] = 1
    with running(library) as session:
        assert kinds(session.sample()) == ["row_remap_failure"]
        assert kinds(session.sample()) == []
