"""Sends a trace through the real ingest, one agent a pod. Interrupted and begun again it sends what was not acknowledged; what was
sent twice all the same is stored once, since machines, GPUs and moments are the same every time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.sandbox.client import (
    Backoff,
    CallError,
    IngestClient,
    RefusedError,
    TokenRefusedError,
    TooLargeError,
    TryLaterError,
)
from fleet.sandbox.readings import gpu_uuid
from fleet.sandbox.replay_memory import PodMemory, ReplayError, ReplayMemory, is_too_old
from fleet.traces import Row, Trace

JSON = dict[str, Any]
AGENT_VERSION = "replay"
BATCH_SAMPLES = 360
IN_FLIGHT = 8
# With a pace, what is due within this time goes together, as a real agent does it.
REPORT_SECONDS = 10.0


@dataclass
class Progress:
    """What became of the readings. `skipped`: too old, left out on demand; `lost`: refused, or acknowledged without being kept, and why."""

    skipped: int = 0
    lost: list[str] = field(default_factory=list)
    values_dropped: dict[str, int] = field(default_factory=dict)
    waiting_for: str = ""


EnrolmentToken = Callable[[], Awaitable[str]]
# Told the instance of each agent that enrolled.
Enrolled = Callable[[int], Awaitable[None]]


async def nothing_more(instance_id: int) -> None:
    """With a token alone there is nothing else that one may do."""


class Replay:
    """`speed`: trace seconds a second; None = as fast as the server takes them. `give_up_seconds`: without any success."""

    def __init__(
        self,
        trace: Trace,
        memory: ReplayMemory,
        client: IngestClient,
        *,
        enrolment_token: EnrolmentToken,
        enrolled: Enrolled = nothing_more,
        speed: float | None = None,
        skip_old: bool = False,
        give_up_seconds: float = 900.0,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        assert memory.start is not None
        self.trace, self.memory, self.client = trace, memory, client
        self.start = memory.start
        self.enrolment_token, self.enrolled = enrolment_token, enrolled
        self.speed, self.skip_old = speed, skip_old
        self.give_up_seconds = give_up_seconds
        self.clock, self.sleep = clock, sleep
        for pod in trace.pods:
            memory.pods.setdefault(pod, PodMemory())
        self.progress = Progress()
        self.in_flight = asyncio.Semaphore(IN_FLIGHT)
        self.batch_samples = BATCH_SAMPLES
        # Answers 401 in a row, by pod.
        self._refusals: dict[str, int] = {}
        self.succeeded_at = clock()
        self._began_at, self._began_t = clock(), self._first_unsent()

    @property
    def done(self) -> int:
        """Readings that need no more sending, this time's and earlier runs'."""
        return sum(self.memory.pods[pod].sent for pod in self.trace.pods)

    @property
    def pods_done(self) -> int:
        return sum(self.memory.pods[pod].sent == len(rows) for pod, rows in self.trace.pods.items())

    async def run(self) -> Progress:
        """Raises ReplayError."""
        try:
            async with asyncio.TaskGroup() as group:
                for pod in self.trace.pods:
                    group.create_task(self._replay(pod))
        except* (CallError, ReplayError) as errors:
            first = errors.exceptions[0]
            raise ReplayError(str(first)) from first
        finally:
            self.memory.save()
        return self.progress

    def _first_unsent(self) -> float:
        left = [rows[self.memory.pods[pod].sent :] for pod, rows in self.trace.pods.items()]
        return min((rows[0].t for rows in left if rows), default=0.0)

    async def _replay(self, pod: str) -> None:
        rows, memory, backoff = self.trace.pods[pod], self.memory.pods[pod], Backoff()
        while memory.sent < len(rows):
            if self._pass_over_old(pod, memory):
                continue
            batch = rows[memory.sent : memory.sent + self.batch_samples]
            if wait := self._wait_for(batch[0]):
                await self.sleep(wait)
                continue
            batch = [row for row in batch if self._wait_for(row) == 0.0]
            try:
                await self._send(pod, memory, batch)
            except TryLaterError as error:
                self._check_patience(error)
                await self.sleep(backoff.next_wait(error))
            else:
                backoff.reset()

    def _pass_over_old(self, pod: str, memory: PodMemory) -> bool:
        """Leave out the next reading where it is too old for the server; raises ReplayError unless that was asked for."""
        row = self.trace.pods[pod][memory.sent]
        if not is_too_old(self.start + row.t, self.clock()):
            return False
        if not self.skip_old:
            raise ReplayError(
                f"Line {row.line} and what follows has become older than 48 h. Add --skip-old to leave such readings out, or a later --start."
            )
        memory.sent += 1
        self.progress.skipped += 1
        return True

    def _wait_for(self, row: Row) -> float:
        """Seconds until this reading may go: never before its own moment, and with a pace not before its turn."""
        wait = self.start + row.t - self.clock()
        if self.speed:
            turn = self._began_at + (row.t - self._began_t) / self.speed
            wait = max(wait, turn - self.clock())
        return 0.0 if wait <= 0 else min(max(wait, 0.2), REPORT_SECONDS)

    async def _send(self, pod: str, memory: PodMemory, batch: Sequence[Row]) -> None:
        async with self.in_flight:
            if not memory.token:
                await self._enrol(pod, memory)
            try:
                answer = await self.client.samples(memory.token, self._body(pod, memory, batch))
            except TokenRefusedError as error:
                self._begin_again(pod, memory, error)
                return
            except TooLargeError:
                if len(batch) == 1:
                    raise
                self.batch_samples = max(1, len(batch) // 2)
                return
            except RefusedError as error:
                if error.is_about_address:
                    raise ReplayError(f"The address does not take samples: {error}. Check --url.") from error
                self._lose(pod, batch, str(error))
                answer = {}
            self._acknowledge(pod, memory, batch, answer)

    async def _enrol(self, pod: str, memory: PodMemory) -> None:
        uuid = self._uuid(pod)
        body = {
            "v": 1,
            "agent_version": AGENT_VERSION,
            "hostname": pod,
            "machine_id": uuid.removeprefix("GPU-").replace("-", ""),
            "boot_id": self.trace.digest[:32],
            "gpus": self._inventory(pod),
        }
        try:
            answer = await self.client.enrol(await self.enrolment_token(), body)
        except TokenRefusedError as error:
            raise ReplayError(
                f"The enrolment token is refused: {error} Make a new one under Settings, Agents, for {len(self.trace.pods)} machines."
            ) from error
        except RefusedError as error:
            raise ReplayError(f"Pod {pod} cannot enrol: {error}. Check --url and the token.") from error
        await self.enrolled(answer["instance_id"])
        memory.token = answer["token"]
        self.memory.save()

    def _begin_again(self, pod: str, memory: PodMemory, error: TokenRefusedError) -> None:
        """The server does not know the agent any more, so perhaps not its readings either: send them all; what it has it keeps once."""
        refusals = self._refusals.get(pod, 0) + 1
        if refusals > 3:
            raise ReplayError(f"Pod {pod} enrols, but its new token is refused each time: {error}")
        self._refusals[pod] = refusals
        memory.token, memory.sent = "", 0

    def _acknowledge(self, pod: str, memory: PodMemory, batch: Sequence[Row], answer: JSON) -> None:
        kept = answer.get("accepted", {}).get("gpu", len(batch))
        if kept < len(batch):
            self._lose(pod, batch, f"{len(batch) - kept} of {len(batch)} were not kept: {answer.get('dropped')}")
        for name, count in (answer.get("dropped") or {}).items():
            self.progress.values_dropped[name] = self.progress.values_dropped.get(name, 0) + count
        memory.sent += len(batch)
        self._refusals.pop(pod, None)
        self.progress.waiting_for = ""
        self.succeeded_at = self.clock()
        self.memory.save_sometimes()

    def _lose(self, pod: str, batch: Iterable[Row], reason: str) -> None:
        lines = [row.line for row in batch]
        self.progress.lost.append(f"pod {pod}, lines {min(lines)} to {max(lines)}: {reason}")

    def _check_patience(self, error: TryLaterError) -> None:
        self.progress.waiting_for = str(error)
        if self.clock() - self.succeeded_at > self.give_up_seconds:
            raise ReplayError(
                f"{self.client.url} has taken nothing for {self.give_up_seconds:.0f} s ({error}). Run the same command again later: it goes on from here."
            ) from error

    def _body(self, pod: str, memory: PodMemory, batch: Sequence[Row]) -> JSON:
        uuid = self._uuid(pod)
        return {
            "v": 1,
            "agent_version": AGENT_VERSION,
            "boot_id": self.trace.digest[:32],
            "seq": memory.sent,
            "sent_at": round(self.clock(), 3),
            "samples": [{"at": self.start + row.t, "gpus": [_reading(uuid, row)]} for row in batch],
        }

    def _inventory(self, pod: str) -> list[JSON]:
        return [{"uuid": self._uuid(pod), "index": 0, "name": "replayed GPU"}]

    def _uuid(self, pod: str) -> str:
        return gpu_uuid(f"{self.trace.digest}/{pod}")


def _reading(uuid: str, row: Row) -> JSON:
    reading: JSON = {"uuid": uuid, "state": "ok"}
    if row.utilization_percent is not None:
        reading["utilization_percent"] = row.utilization_percent
    if row.memory_used_bytes is not None:
        reading["memory_used_bytes"] = row.memory_used_bytes
    return reading
