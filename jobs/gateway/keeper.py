"""Keeps the gateways as their rows say: links to the replicas, nginx before them, requests that were left, and how it all stands."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from fleet.inventory.credentials import CredentialError
from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import private_keys
from jobs.book.models import Job, JobState, Node
from jobs.book.serving import Serving
from jobs.gateway.config import GateConfig, NginxConfig, nginx_config
from jobs.gateway.later import forget_old, give_up_lost, keep_answer, take_due
from jobs.gateway.links import Link, Links
from jobs.gateway.manage import key_of
from jobs.gateway.models import Gateway
from jobs.gateway.nginx import Nginx
from jobs.runner.places import places_of

logger = logging.getLogger(__name__)


@dataclass
class Keeper:
    """`listen`, `web`, `web_host`: of NginxConfig."""

    nginx: Nginx
    links: Links
    listen: str
    web: str
    web_host: str

    def begin(self, *, now: datetime) -> None:
        give_up_lost(now=now)
        self.links.start()

    def end(self) -> None:
        self.nginx.stop()
        self.links.stop()
        self.take_in()

    def round(self, *, now: datetime) -> None:
        """Again and again; nothing of it waits for a machine."""
        gateways = list(Gateway.objects.filter(enabled=True).select_related("job__team").order_by("pk"))
        wanted = {gateway.pk: links_of(gateway) for gateway in gateways}
        self.links.want([link for links in wanted.values() for link in links])
        problem = self._serve(gateways, wanted)
        for gateway in gateways:
            up = sum(link.name in self.links.up for link in wanted[gateway.pk])
            note_state(gateway, state_of(gateway, problem, up), up, now)
        self.take_in()
        sendings = take_due(gateways=gateways, under_way=self.links.under_way, now=now)
        self.links.send(sendings, self.nginx.directory / "inner.sock")
        forget_old(now=now)

    def take_in(self) -> None:
        while not self.links.sent.empty():
            keep_answer(sent=self.links.sent.get(), now=timezone.now())

    def _serve(self, gateways: list[Gateway], wanted: dict[int, list[Link]]) -> str:
        """What nginx says against it."""
        gates = [gate for gateway in gateways if (gate := self._gate(gateway, wanted[gateway.pk])) is not None]
        if not gates:
            self.nginx.stop()
            return ""
        text = nginx_config(NginxConfig(str(self.nginx.directory), self.listen, self.web, self.web_host, gates))
        if problem := self.nginx.serve(text):
            logger.error("nginx refuses the gateways' configuration: %s", problem)
        return problem

    def _gate(self, gateway: Gateway, links: list[Link]) -> GateConfig | None:
        """None where its server's key cannot be opened."""
        try:
            key = key_of(gateway.job, gateway.key_name)
        except CredentialError:
            return None
        return GateConfig(
            name=gateway.name,
            sockets=[str(self.links.socket(link.name)) for link in links if link.name in self.links.up],
            most_running=gateway.most_running,
            queue_limit=gateway.queue_limit,
            requests_per_second=gateway.requests_per_second,
            timeout_seconds=gateway.timeout_seconds,
            retry_after_seconds=gateway.retry_after_seconds,
            server_key=key,
        )


def links_of(gateway: Gateway) -> list[Link]:
    """To the machines of the attempt that runs: each is a replica."""
    serving = Serving.of(gateway.job.serving)
    key = private_keys([gateway.job.team_id]).get(gateway.job.team_id)
    if serving is None or key is None:
        return []
    nodes = running_nodes(gateway.job)
    hosts = list(SshHost.objects.filter(instance__in=[node.instance_id for node in nodes]))
    return [
        Link(
            name=f"{gateway.name}-{node.rank}",
            port=serving.port,
            health_path=serving.health_path,
            addresses=tuple(places_of(node.instance, [host for host in hosts if host.instance_id == node.instance_id])),
            private_key=key,
        )
        for node in nodes
    ]


def running_nodes(job: Job) -> list[Node]:
    nodes = Node.objects.filter(attempt__job=job, attempt__state=JobState.RUNNING, state=JobState.RUNNING)
    return list(nodes.filter(started_at__isnull=False, ended_at=None).select_related("instance").order_by("rank"))


def state_of(gateway: Gateway, problem: str, up: int) -> str:
    if problem:
        return "bad_config"
    if not gateway.token_hash:
        return "no_token"
    return "up" if up else "no_replica"


def note_state(gateway: Gateway, state: str, up: int, now: datetime) -> None:
    Gateway.objects.filter(pk=gateway.pk).update(state=state, replicas_up=up, seen_at=now)
