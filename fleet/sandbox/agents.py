"""The simulated agents: one task each, all in one process. What they measured is a function of time, so they keep no queue:
after an outage an agent goes on from the last moment that the server has acknowledged. One that is far behind first shows how its
machine is now, then sends what is missing before that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fleet.sandbox.acceptance import NAME, Testing
from fleet.sandbox.cast import member_of
from fleet.sandbox.client import Backoff, IngestClient, RefusedError, TokenRefusedError, TooLargeError, TryLaterError
from fleet.sandbox.desk import Desk, write_private
from fleet.sandbox.noise import scatter
from fleet.sandbox.readings import Machine
from fleet.sandbox.schedule import HISTORY_SECONDS, batch_of_times, outline_times, sample_times, step_seconds

JSON = dict[str, Any]
AGENT_VERSION = "0.1.0"
BATCH_SAMPLES = 180
HEARTBEAT_SECONDS = 15.0
# Posts of history at the same time, over all agents; each is followed by as long a pause as it took.
HISTORY_POSTS = 2
SAVE_SECONDS = 30.0
FAR_BEHIND_SECONDS = 120.0


class Office(Protocol):
    """What the agents ask of the dashboard's people: to be listed before they enrol, and a token to enrol with."""

    async def is_listed(self, machine_id: str) -> bool: ...

    async def enrolment_token(self, *, refused: str = "") -> str:
        """`refused`: the token that did not work; another one is made."""
        ...


@dataclass
class Memory:
    """What one agent keeps over a restart of the process.

    Every sample up to `sent_until` is acknowledged, and, while history is missing, those from `ahead_from` to `ahead_until` (0: none).
    """

    token: str = ""
    instance_id: int | None = None
    sent_until: float = 0.0
    ahead_from: float = 0.0
    ahead_until: float = 0.0

    def forget_ahead(self) -> None:
        self.ahead_from = self.ahead_until = 0.0


@dataclass
class Crew:
    """What all agents share."""

    desk: Desk
    client: IngestClient
    office: Office
    path: Path
    say: Callable[[str], None]
    memories: dict[str, Memory] = field(default_factory=dict)
    history: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(HISTORY_POSTS))
    saved_at: float = 0.0
    reporting: set[str] = field(default_factory=set)
    outage: str = ""

    def remember(self) -> None:
        if self.path.exists():
            rows = json.loads(self.path.read_text())
            self.memories = {machine_id: Memory(**row) for machine_id, row in rows.items()}

    def save(self, *, now: float | None = None) -> None:
        """At once, or, given `now`, if the last time is long enough ago: losing some seconds means sending them twice, no more."""
        if now is not None and now - self.saved_at < SAVE_SECONDS:
            return
        self.saved_at = self.desk.clock()
        write_private(self.path, {machine_id: asdict(memory) for machine_id, memory in self.memories.items()})

    def note_outage(self, error: TryLaterError) -> None:
        """Says once that the server takes nothing, whichever agent met it first."""
        if not self.outage:
            self.outage = str(error)
            self.say(f"the dashboard takes nothing at the moment ({error}); trying again")

    def note_success(self) -> None:
        if self.outage:
            self.outage = ""
            self.say("the dashboard takes samples again")

    def note_caught_up(self, machine_id: str) -> None:
        """Says when the last machine that is up has sent its history."""
        if machine_id in self.reporting:
            return
        self.reporting.add(machine_id)
        up = {rental.id for rental in self.desk.rentals.values() if rental.is_up}
        if up <= self.reporting:
            self.say(f"{len(up)} machines are up and their history is sent")

    async def run(self) -> None:
        """Gives every machine that is rented an agent, until cancelled."""
        tasks: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                await self._match(tasks)
                self.save(now=self.desk.clock())
                await asyncio.sleep(2)
        finally:
            await _end(tasks.values())
            self.save()

    async def _match(self, tasks: dict[str, asyncio.Task[None]]) -> None:
        rented = {rental.id for rental in self.desk.all()}
        for machine_id in sorted(rented - tasks.keys()):
            tasks[machine_id] = asyncio.create_task(Agent(self, machine_id).run())
        for task in tasks.values():
            if task.done():
                # Only a defect ends an agent: it ends the process too, and whoever watches that starts it anew.
                task.result()
        await _end([tasks.pop(machine_id) for machine_id in tasks.keys() - rented])


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Agent:
    """The agent of one machine: enrols, catches up, then reports every few seconds while its machine runs."""

    def __init__(self, crew: Crew, machine_id: str) -> None:
        self.crew = crew
        self.machine_id = machine_id
        self.memory = crew.memories.setdefault(machine_id, Memory())
        self.member = member_of(machine_id)
        self.backoff = Backoff()
        self.interval_seconds, self.report_seconds, self.paused = 5.0, 10.0, False
        self.batch_samples = BATCH_SAMPLES
        self.sequence = 0
        self.introduced_boot = ""
        self.heartbeat_at = 0.0
        self.testing = Testing(crew.client)

    async def run(self) -> None:
        while True:
            try:
                wait = await self.step()
            except TryLaterError as error:
                self.crew.note_outage(error)
                wait = self.backoff.next_wait(error)
            except TokenRefusedError:
                self._forget_token()
                wait = 1.0
            await asyncio.sleep(wait)

    async def step(self) -> float:
        """Do what is due now; returns the seconds until the next step."""
        machine = self._machine()
        if machine is None:
            # Also one that is off is registered as soon as it is listed, which asking does.
            if not self.memory.token:
                await self.crew.office.is_listed(self.machine_id)
            return 2.0
        if not self.memory.token and not await self._enrol(machine):
            return 2.0
        now = self.crew.desk.clock()
        if not self._is_silent(machine, now):
            await self._beat(machine, now)
            await self.testing.finish(machine, self.memory.token, now=now)
        if not self.paused and await self._report(machine, now):
            return 0.0
        if self.paused or not self.memory.ahead_until:
            self.crew.note_caught_up(self.machine_id)
        return self.report_seconds - (now - self._offset) % self.report_seconds

    def _machine(self) -> Machine | None:
        """The machine while it is up."""
        desk = self.crew.desk
        desk.refresh()
        rental = desk.rentals.get(self.machine_id)
        if rental is None or not rental.is_up or rental.started_at is None:
            return None
        return Machine.of(rental, born_at=desk.born_at)

    async def _enrol(self, machine: Machine) -> bool:
        """False: the provider's listing has not reached the dashboard yet, and enrolling now would make a second machine."""
        office = self.crew.office
        if not await office.is_listed(self.machine_id):
            return False
        token = await office.enrolment_token()
        body = {
            "v": 1,
            "agent_version": AGENT_VERSION,
            "hostname": machine.name,
            "machine_id": machine.uuids[0].removeprefix("GPU-").replace("-", ""),
            "boot_id": machine.boot_id,
            "provider_ids": machine.provider_ids(),
            "gpus": machine.inventory(),
            "host": machine.environment(),
        }
        try:
            answer = await self.crew.client.enrol(token, body)
        except TokenRefusedError:
            await office.enrolment_token(refused=token)
            raise
        self.memory.token, self.memory.instance_id = answer["token"], answer["instance_id"]
        self._obey(answer)
        self.crew.save()
        return True

    def _forget_token(self) -> None:
        """The server knows us no more: its data may be new, so the day's history is sent again. What it has it stores once."""
        if self.memory.token:
            self.crew.say(f"{self.machine_id}: the agent's token is refused; enrolling again")
        self.memory.token, self.memory.sent_until, self.introduced_boot = "", 0.0, ""
        self.memory.forget_ahead()

    @property
    def _offset(self) -> float:
        """Agents of one fleet do not all report in the same moment."""
        return round(self.report_seconds * scatter(int(self.machine_id[3:], 16), 9), 2)

    def _is_silent(self, machine: Machine, now: float) -> bool:
        return now > self._last_word(machine, now)

    def _last_word(self, machine: Machine, now: float) -> float:
        """Until when this agent reports: one of them fell silent before the birth, until its machine is restarted."""
        silent_from = self.member.silent_from if self.member else None
        return now if silent_from is None or machine.booted_at > machine.born_at else machine.born_at + silent_from

    async def _report(self, machine: Machine, now: float) -> bool:
        """Send the next batch; False when nothing (more) is to be sent now."""
        memory = self.memory
        since = max(memory.sent_until, machine.booted_at, now - HISTORY_SECONDS)
        until = min(now, self._last_word(machine, now))
        if memory.ahead_until <= since or until - memory.ahead_until > FAR_BEHIND_SECONDS:
            memory.forget_ahead()
        if memory.ahead_until:
            return await self._report_behind(machine, since, until, now)
        if until - since > FAR_BEHIND_SECONDS:
            return await self._show_now(machine, since, until, now)
        times = self._times(since, until, now)
        if times and await self._send(machine, since, times):
            memory.sent_until = times[-1]
        return bool(times) and until - times[-1] >= self.report_seconds

    async def _show_now(self, machine: Machine, since: float, until: float, now: float) -> bool:
        """Send the outline of the last hours ahead of the history."""
        coarse, dense = outline_times(since=since, until=until, now=now, **self._grid())
        if dense and await self._send(machine, dense[0], [*coarse, *dense][-self.batch_samples :]):
            self.memory.ahead_from, self.memory.ahead_until = dense[0], dense[-1]
        return bool(dense)

    async def _report_behind(self, machine: Machine, since: float, until: float, now: float) -> bool:
        """Send what is new, else some history. An agent whose turn it is not does not wait for it: its news would grow old."""
        memory = self.memory
        if until - memory.ahead_until >= self.report_seconds:
            times = self._times(memory.ahead_until, until, now)
            if times and await self._send(machine, memory.ahead_until, times):
                memory.ahead_until = times[-1]
            return True
        if self.crew.history.locked():
            return False
        times = self._times(since, memory.ahead_from, now)
        if not times:
            memory.sent_until = memory.ahead_until
            memory.forget_ahead()
            return True
        async with self.crew.history:
            began = self.crew.desk.clock()
            if await self._send(machine, since, times):
                memory.sent_until = times[-1]
            await asyncio.sleep(min(self.crew.desk.clock() - began, 2.0))
        return True

    def _times(self, since: float, until: float, now: float) -> list[float]:
        return batch_of_times(sample_times(since=since, until=until, now=now, **self._grid()), self.batch_samples)

    def _grid(self) -> dict[str, float]:
        return {
            "interval_seconds": self.interval_seconds,
            "offset_seconds": self._offset % self.interval_seconds,
        }

    async def _send(self, machine: Machine, since: float, times: list[float]) -> bool:
        """Whether the server is done with these samples: it took them, or never will."""
        body = self._batch(machine, since, times)
        try:
            self._obey(await self.crew.client.samples(self.memory.token, body))
        except TooLargeError:
            self.batch_samples = max(1, self.batch_samples // 2)
            return False
        except RefusedError as error:
            self.crew.say(f"{self.machine_id}: a batch of {len(times)} samples was refused: {error}")
        self.backoff.reset()
        self.crew.note_success()
        self.introduced_boot = machine.boot_id
        return True

    def _batch(self, machine: Machine, since: float, times: list[float]) -> JSON:
        self.sequence += 1
        body = {**self._envelope(machine), "seq": self.sequence, "samples": [self._sample(machine, at) for at in times]}
        if events := self._events(machine, since, times[-1]):
            body["events"] = events
        if self.introduced_boot != machine.boot_id:
            body |= {"inventory": machine.inventory(), "environment": machine.environment()}
        return body

    def _sample(self, machine: Machine, at: float) -> JSON:
        """Also one that is sent ahead stands for what lies between it and its neighbours in the history."""
        step = step_seconds(self.crew.desk.clock() - at, self.interval_seconds)
        return {**machine.sample(at), "interval_seconds": round(step)}

    def _envelope(self, machine: Machine) -> JSON:
        return {
            "v": 1,
            "agent_version": AGENT_VERSION,
            "boot_id": machine.boot_id,
            "sent_at": round(self.crew.desk.clock(), 3),
        }

    def _events(self, machine: Machine, since: float, until: float) -> list[JSON]:
        if machine.booted_at > machine.born_at:
            started = {"at": machine.booted_at, "kind": "agent_started"}
            return [started] if since <= machine.booted_at <= until else []
        found = []
        for happening in self.member.happenings if self.member else ():
            at = machine.born_at + happening.t
            if since < at <= until:
                event: JSON = {"at": at, "kind": happening.kind, "detail": happening.detail}
                event |= {} if happening.code is None else {"code": happening.code}
                event |= {} if happening.gpu is None else {"gpu": machine.uuids[happening.gpu]}
                found.append(event)
        return found

    async def _beat(self, machine: Machine, now: float) -> None:
        if now - self.heartbeat_at < HEARTBEAT_SECONDS:
            return
        body = {
            **self._envelope(machine),
            "nvml": {"state": "ok", "since": machine.booted_at},
            "queued_batches": 0,
            "dropped_batches": 0,
            "cpu_percent": 0.3,
            "memory_bytes": 31 << 20,
            "actions": [] if self.paused else [NAME],
        }
        answer = await self.crew.client.heartbeat(self.memory.token, body)
        self._obey(answer)
        self.heartbeat_at = now
        await self.testing.take(answer.get("actions"), machine, self.memory.token, now=now)

    def _obey(self, answer: JSON) -> None:
        config = answer.get("config") or {}
        self.interval_seconds = max(1.0, float(config.get("interval_seconds", self.interval_seconds)))
        self.report_seconds = max(1.0, float(config.get("report_seconds", self.report_seconds)))
        self.paused = bool(config.get("paused", self.paused))
