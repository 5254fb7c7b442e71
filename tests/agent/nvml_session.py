"""Running the agent's NVML session inside a test, on the Python stand-in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from agent.nvml.calls import call
from agent.nvml.device import Place
from agent.nvml.session import Session
from tests.fakes.nvml.library import FakeNvml, installed


class Running:
    """A session that a test samples at times of its choice."""

    def __init__(self, library: FakeNvml, session: Session) -> None:
        self.library = library
        self.session = session
        self.now = 1000.0

    def sample(self, after_seconds: float = 5.0) -> Any:
        self.now += after_seconds
        self.library.advance(after_seconds)
        return self.session.sample(self.now)


@contextlib.contextmanager
def running(library: FakeNvml, *, host_ids: bool = True, root: str = "/") -> Iterator[Running]:
    with installed(library):
        call("nvmlInit")
        session = Session(Place(root, host_ids=host_ids))
        try:
            yield Running(library, session)
        finally:
            session.close()
            call("nvmlShutdown")


def one_sample(library: FakeNvml, *, host_ids: bool = True, root: str = "/") -> Any:
    with running(library, host_ids=host_ids, root=root) as session:
        return session.sample()


def by_uuid(message: Any) -> dict[str, Any]:
    return {gpu["uuid"]: gpu for gpu in message["gpus"]}


def kinds(message: Any) -> list[str]:
    return [event["kind"] for event in message["events"]]
