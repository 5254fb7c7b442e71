"""Which agent a token belongs to, from memory; what the database says of it is at most a few seconds older.

A sweep asks for all cached agents in one query, so that a token that was revoked or whose machine is gone is refused, and a changed interval told, within TRUST_SECONDS.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from psycopg_pool import AsyncConnectionPool

from fleet.teams.secrets import hash_token
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.ingest.errors import UnavailableError
from fleet.telemetry.ingest.feeder import Feeder
from fleet.telemetry.readings import CONFIRMATIONS

SWEEP_SECONDS = 2.0
# A token revoked now is refused at the latest this much later.
TRUST_SECONDS = 4.5
UNUSED_SECONDS = 300.0
MAX_UNKNOWN = 10_000
AGENT_PREFIX = "rra_"
TOKEN_MAX_LENGTH = 100


@dataclass(slots=True, eq=False, kw_only=True)
class KnownAgent(Feeder):
    """One agent as ingest needs it."""

    pk: int
    token_hash: str
    interval_seconds: int
    report_seconds: int
    paused: bool
    skew_seconds: float
    verified_at: float
    used_at: float
    # When the agent's own row last had its batch noted.
    noted_at: float = 0.0
    # The last boots that heartbeats came from, the newest last.
    boots: deque[str] = field(default_factory=lambda: deque(maxlen=2))
    # Received minus sent of the last batches, the newest last (readings.agreed_skew).
    measured_skews: deque[float] = field(default_factory=lambda: deque(maxlen=CONFIRMATIONS))

    # When it last told what became of actions.
    reports: deque[float] = field(default_factory=deque)
    # (when, bytes) that it moved to measure its network.
    moved: deque[tuple[float, int]] = field(default_factory=deque)

    def forget_gpus(self) -> None:
        """Everything about this machine is read anew with its next request."""
        self.verified_at = -math.inf
        # A dataclass with slots is a second class, which super() does not know.
        Feeder.forget_gpus(self)


# A machine that was given back, or whose account was disconnected, has no say any more; one that is listed again has.
_ALLOWED = """
SELECT a.id, a.token_hash, a.instance_id, a.interval_seconds, a.report_seconds, a.paused, coalesce(a.clock_skew_seconds, 0)
FROM fleet_agent a JOIN fleet_instance i ON i.id = a.instance_id AND i.gone_at IS NULL WHERE a.revoked_at IS NULL AND
"""
_BY_HASH = f"{_ALLOWED} a.token_hash = %s"
_BY_IDS = f"{_ALLOWED} a.id = ANY(%s)"
_GPUS = "SELECT uuid, id FROM fleet_gpu WHERE instance_id = %s"
_REMOVED = "SELECT instance_id, id FROM fleet_gpu WHERE instance_id = ANY(%s) AND removed_at IS NOT NULL"


class AgentCache:
    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool
        self._known: dict[str, KnownAgent] = {}
        # Tokens that nobody has: a program that guesses them must not cost a query each time.
        self._unknown: OrderedDict[str, float] = OrderedDict()

    async def find(self, token: str) -> KnownAgent | None:
        """The agent, or None for a token that is unknown, revoked or of a machine that is gone. Raises UnavailableError when the database is away."""
        now = time.monotonic()
        if not token.startswith(AGENT_PREFIX) or len(token) > TOKEN_MAX_LENGTH:
            return None
        token_hash = hash_token(token)
        agent = self._known.get(token_hash)
        if agent is not None and now - agent.verified_at < TRUST_SECONDS:
            agent.used_at = now
            return agent
        if now - self._unknown.get(token_hash, -SWEEP_SECONDS) < SWEEP_SECONDS:
            return None
        return await self._load(token_hash, now)

    def forget(self, agent: KnownAgent) -> None:
        self._known.pop(agent.token_hash, None)

    async def sweep(self) -> None:
        """Compare every cached agent with the database; forget those that were revoked, replaced or not used for long."""
        now = time.monotonic()
        self._forget_unused(now)
        by_id = {agent.pk: agent for agent in self._known.values()}
        if not by_id:
            return
        async with reaching_database(), self._pool.connection() as connection:
            rows = await (await connection.execute(_BY_IDS, [list(by_id)])).fetchall()
            instances = [agent.instance_id for agent in by_id.values()]
            removed = await (await connection.execute(_REMOVED, [instances])).fetchall()
        _remember_removed(by_id.values(), removed)
        current = {row[0]: row for row in rows}
        for pk, agent in by_id.items():
            row = current.get(pk)
            if row is None or (row[1], row[2]) != (agent.token_hash, agent.instance_id):
                self.forget(agent)
            else:
                _refresh(agent, row, now)

    async def run(self) -> None:
        """Sweep for ever. While the database is away the cached agents run out of trust, and requests are answered with 503."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except UnavailableError:
                continue

    async def _load(self, token_hash: str, now: float) -> KnownAgent | None:
        async with reaching_database(), self._pool.connection() as connection:
            row = await (await connection.execute(_BY_HASH, [token_hash])).fetchone()
            if row is None:
                self._remember_unknown(token_hash, now)
                self._known.pop(token_hash, None)
                return None
            gpus = await (await connection.execute(_GPUS, [row[2]])).fetchall()
            removed = await (await connection.execute(_REMOVED, [[row[2]]])).fetchall()
        agent = self._known.get(token_hash)
        if agent is None:
            pk, _, instance_id, interval, report, paused, skew = row
            agent = KnownAgent(
                pk=pk,
                token_hash=token_hash,
                instance_id=instance_id,
                interval_seconds=interval,
                report_seconds=report,
                paused=paused,
                skew_seconds=skew,
                gpu_ids=dict(gpus),
                verified_at=now,
                used_at=now,
            )
            self._known[token_hash] = agent
        _refresh(agent, row, now)
        agent.gpu_ids.update(gpus)
        agent.used_at = now
        _remember_removed([agent], removed)
        return agent

    def _remember_unknown(self, token_hash: str, now: float) -> None:
        self._unknown[token_hash] = now
        self._unknown.move_to_end(token_hash)
        while len(self._unknown) > MAX_UNKNOWN:
            self._unknown.popitem(last=False)

    def _forget_unused(self, now: float) -> None:
        for agent in list(self._known.values()):
            if now - agent.used_at > UNUSED_SECONDS:
                self.forget(agent)


def _remember_removed(agents: Iterable[KnownAgent], rows: Iterable[tuple[int, int]]) -> None:
    by_instance: dict[int, set[int]] = {}
    for instance_id, gpu_id in rows:
        by_instance.setdefault(instance_id, set()).add(gpu_id)
    for agent in agents:
        agent.removed = by_instance.get(agent.instance_id, set())


def _refresh(agent: KnownAgent, row: Iterable[Any], now: float) -> None:
    _, _, _, agent.interval_seconds, agent.report_seconds, agent.paused, agent.skew_seconds = row
    agent.verified_at = now
