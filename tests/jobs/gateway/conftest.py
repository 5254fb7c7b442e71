from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic

import httpx
import pytest
from django.utils import timezone

from config.embedded.account import service_account
from fleet.guard import Guard
from jobs.book.models import Job
from jobs.gateway import links
from jobs.gateway.keeper import Keeper
from jobs.gateway.links import Links
from jobs.gateway.manage import Limits, make_token, set_gateway
from jobs.gateway.models import Gateway
from jobs.gateway.nginx import Nginx
from tests.e2e.conftest import free_port
from tests.jobs.conftest import ACTOR
from tests.jobs.loadtest.conftest import serves
from tests.jobs.loadtest.engine import Watched, engine
from tests.programs import needs

__all__ = ["serves"]
TINY = {"model": "org/tiny", "messages": [{"role": "user", "content": "a few words"}], "max_tokens": 4}


@dataclass
class Gate:
    """One gateway with its nginx, its keeper, and the engines behind it."""

    keeper: Keeper
    gateway: Gateway
    job: Job
    token: str
    url: str
    engines: list[Watched]

    @property
    def base(self) -> str:
        return f"{self.url}/{self.gateway.name}"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, **more) -> httpx.Response:
        body = TINY | more
        return httpx.post(f"{self.base}/v1/chat/completions", json=body, headers=self.headers, timeout=30)

    def rounds(self, until: Callable[[], bool]) -> None:
        """As the process does, without its pauses."""
        deadline, pause = monotonic() + 60, Event()
        while not until():
            assert monotonic() < deadline, Gateway.objects.values()
            self.keeper.round(now=timezone.now())
            pause.wait(0.05)

    def has_up(self, count: int) -> Callable[[], bool]:
        """And nginx knows it."""

        def look() -> bool:
            self.gateway.refresh_from_db()
            written = self.keeper.nginx.text.count(f"server unix:{self.keeper.nginx.directory}/{self.gateway.name}-")
            return self.gateway.replicas_up == count == written and self.answers()

        return look

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/x", timeout=5).status_code == 404
        except httpx.TransportError:
            return False


@pytest.fixture
def gate_of(machine_of, serves, live_server, settings, monkeypatch) -> Iterator[Callable[..., Gate]]:
    """gate_of("--slots", "2", replicas=2, most_running=…) is a gateway before so many engines, each on a machine with its own SSH server.

    The machines share one loopback here, so each of the engines has a port of its own; a replica's port is looked up by its rank.
    """
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
    monkeypatch.setattr(links, "LOOK_SECONDS", 0.05)
    with ExitStack() as stack:

        def make(*knobs: str, replicas: int = 1, job_fields: dict[str, object] | None = None, **limits) -> Gate:
            engines = [stack.enter_context(engine(*knobs)) for _replica in range(replicas)]
            machines = [machine_of(f"serve-{rank}")[0] for rank in range(replicas)]
            job = serves(*machines, port=engines[0].port, **(job_fields or {}))
            own_ports(monkeypatch, [one.port for one in engines])
            gateway = set_gateway(actor=ACTOR, job=job, limits=Limits(**limits), now=timezone.now())
            token = make_token(actor=ACTOR, gateway=gateway).secret
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rr-gate-")))
            keeper = Keeper(
                Nginx(needs("nginx"), directory, account_for(directory)),
                Links(directory, Guard.of(settings.ALLOWED_NETWORKS)),
                listen=f"127.0.0.1:{(port := free_port())}",
                web=live_server.url,
                web_host="localhost",
            )
            keeper.begin(now=timezone.now())
            stack.callback(keeper.end)
            gate = Gate(keeper, gateway, job, token, f"http://127.0.0.1:{port}", engines)
            gate.rounds(gate.has_up(replicas))
            return gate

        yield make


def account_for(directory: Path) -> tuple[int, int] | None:
    """As the command does: root runs no nginx."""
    account = service_account()
    if account.is_own:
        return None
    os.chown(directory, account.uid, account.gid)
    return account.uid, account.gid


def own_ports(monkeypatch, ports: list[int]) -> None:
    from dataclasses import replace

    from jobs.gateway import keeper

    found = keeper.links_of

    def links_of(gateway):
        return [replace(link, port=ports[int(link.name.rsplit("-", 1)[1])]) for link in found(gateway)]

    monkeypatch.setattr(keeper, "links_of", links_of)
