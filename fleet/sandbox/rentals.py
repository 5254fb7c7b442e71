"""Rented machines of the sandbox provider and how their states move: pure, `now` is an argument (seconds since the epoch)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fleet.sandbox.cast import MEMBERS, OFF_DAYS, PAUSES, Member
from fleet.sandbox.patterns import DAY, HOUR, MINUTE

RECLAIM_PAUSE_SECONDS = 10 * MINUTE
FIRST_RECLAIM_SECONDS = 40 * MINUTE
LEASE_SECONDS = 7 * DAY
BOOT_SECONDS = 90.0
# A terminated machine stays in listings for a while, as with most clouds.
TOMBSTONE_SECONDS = HOUR

# From a passing state: seconds it lasts, and what follows.
PASSING = {
    "provisioning": (75.0, "running"),
    "starting": (40.0, "running"),
    "stopping": (25.0, "stopped"),
    "terminating": (15.0, "terminated"),
    "reclaimed": (RECLAIM_PAUSE_SECONDS, "provisioning"),
}


# What is charged in each state: everything, the disk, or nothing.
CHARGED_FOR = {
    "provisioning": "none",
    "starting": "storage",
    "running": "full",
    "stopping": "full",
    "stopped": "storage",
    "reclaimed": "storage",
    "terminating": "storage",
    "terminated": "none",
}


class WrongStateError(Exception):
    """The machine cannot do this in its present state."""


@dataclass
class Rental:
    """One machine as its provider keeps it. Times are seconds since the epoch; `lease_ends_at` only for prepaid machines."""

    id: str
    name: str
    offer: str
    region: str
    market: str
    image: str
    disk_gb: int
    status: str
    status_since: float
    created_at: float
    started_at: float | None = None
    stopped_at: float | None = None
    lease_ends_at: float | None = None
    reclaim_at: float | None = None
    reclaimed_every: float | None = None
    reason: str = ""
    # What a lie made of it: a passing state that ends elsewhere, an end that is none, a list that is late, a stop that saves nothing (lies.py).
    instead: str = ""
    comes_back_at: float | None = None
    listed_from: float | None = None
    bills_on: bool = False
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """Whether its operating system runs, so that its agent can report."""
        return self.status in {"running", "stopping"}

    @property
    def charged(self) -> str:
        return "full" if self.bills_on else CHARGED_FOR[self.status]

    def advance(self, now: float) -> bool:
        """Go through every change that was due by `now`; says whether there was one."""
        before = (self.status, self.status_since, self.lease_ends_at)
        while due := self._due(now):
            self._enter(*due)
        if self.lease_ends_at and self.lease_ends_at <= now:
            self.lease_ends_at += LEASE_SECONDS * (1 + (now - self.lease_ends_at) // LEASE_SECONDS)
        return before != (self.status, self.status_since, self.lease_ends_at)

    def _due(self, now: float) -> tuple[str, float] | None:
        if self.status in PASSING:
            seconds, following = PASSING[self.status]
            at = self.status_since + seconds
            return (self.instead or following, at) if at <= now else None
        if self.comes_back_at is not None and self.comes_back_at <= now:
            return "running", self.comes_back_at
        if self.status == "running" and self.reclaim_at is not None and self.reclaim_at <= now:
            return "reclaimed", self.reclaim_at
        return None

    def _enter(self, status: str, at: float) -> None:
        self.status, self.status_since, self.instead = status, at, ""
        if status == "running":
            self.comes_back_at = None
        if status in {"running", "terminated"}:
            self.bills_on = False
        self.reason = "spot capacity was reclaimed" if status == "reclaimed" else ""
        if status == "running":
            self.started_at, self.stopped_at = at, None
            self.reclaim_at = at + self.reclaimed_every if self.reclaimed_every else None
        elif status in {"stopped", "reclaimed", "terminated"}:
            self.stopped_at = at

    def start(self, now: float) -> None:
        self._request("starting", now, done={"starting", "provisioning", "running"}, allowed={"stopped", "reclaimed"})

    def stop(self, now: float) -> None:
        self._request("stopping", now, done={"stopping", "stopped", "reclaimed"}, allowed={"running"})

    def reboot(self, now: float) -> None:
        self._request("starting", now, done={"starting"}, allowed={"running"})

    def terminate(self, now: float) -> None:
        allowed = {"running", "stopped", "stopping", "starting", "provisioning", "reclaimed"}
        self._request("terminating", now, done={"terminating", "terminated"}, allowed=allowed)

    def _request(self, status: str, now: float, *, done: set[str], allowed: set[str]) -> None:
        """A request that is fulfilled already, or on its way, is accepted again and changes nothing."""
        if self.status in done:
            return
        if self.status not in allowed:
            raise WrongStateError(f"{self.name} is {self.status}; this needs one of: {', '.join(sorted(allowed))}.")
        self._enter(status, now)

    def is_listed(self, now: float) -> bool:
        return self.listed_from is None or self.listed_from <= now

    def is_forgotten(self, now: float) -> bool:
        return (
            self.status == "terminated" and self.comes_back_at is None and now - self.status_since > TOMBSTONE_SECONDS
        )


def first_rentals(born_at: float) -> Iterator[Rental]:
    """What is rented when the sandbox is born."""
    for member in MEMBERS:
        yield rental_of(member, born_at)


def runs_of(member: Member, born_at: float) -> Iterator[tuple[float, float | None]]:
    """When it was on, up to the birth: start and end, None for a run that goes on."""
    if member.status in PASSING:
        return
    started_at = born_at - member.age_days * DAY + BOOT_SECONDS
    for stopped_days, started_days in PAUSES.get(member.id, ()):
        yield started_at, born_at - stopped_days * DAY
        started_at = born_at - started_days * DAY
    yield started_at, born_at - OFF_DAYS[member.id] * DAY if member.id in OFF_DAYS else None


def rental_of(member: Member, born_at: float) -> Rental:
    """As it is at the birth."""
    created_at = born_at - member.age_days * DAY
    started_at, stopped_at = list(runs_of(member, born_at))[-1] if member.status not in PASSING else (None, None)
    every = member.reclaimed_every_hours
    return Rental(
        id=member.id,
        name=member.name,
        offer=member.offer,
        region=member.region,
        market=member.market,
        image=member.image,
        disk_gb=member.disk_gb,
        status=member.status,
        status_since=stopped_at or started_at or created_at,
        created_at=created_at,
        started_at=started_at,
        stopped_at=stopped_at,
        lease_ends_at=born_at + member.lease_hours * HOUR if member.lease_hours else None,
        reclaim_at=born_at + FIRST_RECLAIM_SECONDS if every else None,
        reclaimed_every=every * HOUR if every else None,
        labels={"project": member.project, "owner": member.owner},
    )
