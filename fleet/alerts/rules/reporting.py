"""Machines that say nothing, and drivers that do not answer. A provider or a network that is away is one alert, not hundreds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.alerts.findings import URGENT, WARNING, Finding, account_subject
from fleet.alerts.rules.base import Limits, RuleKind, Threshold, machine_finding
from fleet.alerts.snapshot import HEARTBEAT_SECONDS, Account, Machine, Snapshot

SILENT, UNREACHABLE = "agent_silent", "machine.unreachable"
PROVIDER_OUTAGE, NETWORK_OUTAGE = "provider.outage", "network.outage"
NETWORK_SUBJECT = "network"
# States in which a machine is on its way and nobody expects it to speak.
_ON_ITS_WAY = frozenset({"provisioning", "starting", "stopping", "terminating"})
# Long enough for one heartbeat to be late on its way.
MISSED_SECONDS = 1.5 * HEARTBEAT_SECONDS
READINGS_MISSED = 3
# Machines and share of an account's machines from which silence is the account's and not theirs; half of it keeps it open.
OUTAGE_MACHINES, OUTAGE_SHARE = 3, 0.5
NETWORK_ACCOUNTS = 2


@dataclass(frozen=True, slots=True)
class Silence:
    """How long nothing was heard of a machine while somebody listened. `limit_seconds`: from where that is silence."""

    machine: Machine
    heard_at: datetime
    seconds: float
    limit_seconds: float

    @property
    def is_silent(self) -> bool:
        return self.seconds > self.limit_seconds

    @property
    def missed(self) -> bool:
        return self.seconds > min(self.limit_seconds, max(MISSED_SECONDS, self.limit_seconds / 2))


def silence_of(machine: Machine, snapshot: Snapshot, limit_seconds: float, now: datetime) -> Silence | None:
    """None for a machine that nobody expects to report: it is off, on its way, or has neither agent nor exporter."""
    heard_at = _heard_at(machine)
    if heard_at is None or machine.powered is False or machine.state in _ON_ITS_WAY:
        return None
    if machine.agent is None:
        limit_seconds = max(limit_seconds, READINGS_MISSED * machine.scrape_seconds)
    # A moment that is still to come was written before the clock was set back: it says nothing.
    counted_from = snapshot.watching_since if heard_at > now else max(heard_at, snapshot.watching_since)
    return Silence(machine, heard_at, (now - counted_from).total_seconds(), limit_seconds)


def _heard_at(machine: Machine) -> datetime | None:
    if machine.agent is not None:
        return machine.agent.heard_at
    if not machine.scrape_seconds:
        return None
    readings = [gpu.sampled_at for gpu in machine.gpus if gpu.sampled_at is not None]
    readings += [machine.host.sampled_at] if machine.host else []
    return max(readings, default=None)


def silent(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    silences = [
        silence
        for machine in snapshot.machines
        if (silence := silence_of(machine, snapshot, limits["seconds"], now)) is not None
    ]
    out = accounts_out(silences, snapshot)
    network = len(out) >= NETWORK_ACCOUNTS and _most(
        [silence for silence in silences if silence.missed], silences, held=_is_open(snapshot, NETWORK_OUTAGE)
    )
    for silence in silences:
        # Watched for too short a time to say that it speaks again.
        unsettled = silence.heard_at < snapshot.watching_since and not silence.is_silent
        if silence.is_silent or unsettled:
            yield from _finding(silence, snapshot, out=out, network=network, keeps=unsettled)


def accounts_out(silences: Iterable[Silence], snapshot: Snapshot) -> set[int]:
    """Accounts so many machines of which missed a heartbeat together that it is the account."""
    by_account: dict[int, list[Silence]] = {}
    for silence in silences:
        by_account.setdefault(silence.machine.account_id, []).append(silence)
    return {pk for pk, of_account in by_account.items() if _is_out(pk, of_account, snapshot)}


def _is_out(account_pk: int, silences: list[Silence], snapshot: Snapshot) -> bool:
    held = snapshot.open_parts(PROVIDER_OUTAGE, SILENT) | snapshot.open_parts(NETWORK_OUTAGE, SILENT)
    is_held = any(subject in {account_subject(account_pk), NETWORK_SUBJECT} for subject, _detail in held)
    missed = [silence for silence in silences if silence.missed]
    return any(silence.is_silent for silence in missed) and _most(missed, silences, held=is_held)


def _most(missed: list[Silence], silences: list[Silence], *, held: bool) -> bool:
    least, share = (OUTAGE_MACHINES - 1, OUTAGE_SHARE / 2) if held else (OUTAGE_MACHINES, OUTAGE_SHARE)
    return len(missed) >= max(least, share * len(silences))


def _is_open(snapshot: Snapshot, cause: str) -> bool:
    return bool(snapshot.open_parts(cause, SILENT))


def _finding(silence: Silence, snapshot: Snapshot, *, out: set[int], network: bool, keeps: bool) -> Iterator[Finding]:
    machine = silence.machine
    since = silence.heard_at + timedelta(seconds=HEARTBEAT_SECONDS)
    values = {"heard_at": silence.heard_at.isoformat(), **_as_the_provider_says(machine, snapshot)}
    own = machine_finding(machine, SILENT, UNREACHABLE, URGENT, since=since, values=values, keeps=keeps)
    if machine.account_id not in out:
        yield own
        return
    yield Finding(
        cause=NETWORK_OUTAGE if network else PROVIDER_OUTAGE,
        subject=NETWORK_SUBJECT if network else account_subject(machine.account_id),
        kind=SILENT,
        severity=URGENT,
        detail=machine.subject,
        keeps=keeps,
        since=since,
        account_id=None if network else machine.account_id,
        scope=machine.subject,
        price_per_hour=machine.price_per_hour,
        currency=machine.currency,
        values={"machine": machine.name, **values},
    )


def _as_the_provider_says(machine: Machine, snapshot: Snapshot) -> dict[str, str]:
    """The other witness. Where its listing is old too, it says nothing of now."""
    account = snapshot.account(machine.account_id)
    if account is None or not account.reads:
        return {"provider": "none"}
    if account.failures:
        return {"provider": "failing", "account": account.name}
    return {"provider": machine.state, "billing": machine.billing, "account": account.name}


def poll_failing(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    silences = [silence_of(machine, snapshot, _DEFAULT_SILENCE, now) for machine in snapshot.machines]
    out = accounts_out([silence for silence in silences if silence is not None], snapshot)
    for account in snapshot.accounts:
        if not account.reads:
            continue
        if account.failures >= limits["failures"] or _is_late(account, snapshot, now):
            yield _unread(account, cause=PROVIDER_OUTAGE if account.pk in out else "account.poll")


def _is_late(account: Account, snapshot: Snapshot, now: datetime) -> bool:
    """No complete listing for three intervals of a time in which there were polls at all."""
    if account.listed_at is None:
        return False
    waited = now - max(account.listed_at, snapshot.watching_since)
    return waited > READINGS_MISSED * timedelta(seconds=account.interval_seconds)


def _unread(account: Account, *, cause: str) -> Finding:
    # Credentials do not come back by themselves.
    severity = URGENT if account.error_kind in {"auth_failed", "scope_missing"} else WARNING
    return Finding(
        cause=cause,
        subject=account_subject(account.pk),
        kind="poll_failing",
        severity=severity,
        detail=account_subject(account.pk) if cause == PROVIDER_OUTAGE else "",
        account_id=account.pk,
        scope="listing" if cause == PROVIDER_OUTAGE else "",
        values={
            "account": account.name,
            "error": account.error_kind,
            "listed_at": account.listed_at.isoformat() if account.listed_at else "",
        },
    )


def _believed(machine: Machine, since: datetime | None, now: datetime) -> datetime | None:
    """What a machine says of when something began, where it can be so."""
    return since if since is not None and machine.first_seen_at <= since <= now else None


def driver(snapshot: Snapshot, _limits: Limits, now: datetime) -> Iterator[Finding]:
    """NVML as the heartbeats tell of it. A machine that is silent too says nothing of its driver."""
    for machine in snapshot.machines:
        agent = machine.agent
        if agent is None or machine.powered is False or agent.nvml_state not in {"hung", "mismatch", "error"}:
            continue
        hung = agent.nvml_state == "hung"
        quiet = (now - agent.heard_at).total_seconds() > MISSED_SECONDS
        yield machine_finding(
            machine,
            "driver_hung",
            "gpu.driver",
            URGENT if hung else WARNING,
            since=_believed(machine, agent.nvml_since, now),
            keeps=quiet,
            values={"state": agent.nvml_state, "detail": agent.nvml_detail},
        )


_DEFAULT_SILENCE = 45.0
RULES = (
    RuleKind(
        SILENT,
        UNREACHABLE,
        URGENT,
        silent,
        (Threshold("seconds", _DEFAULT_SILENCE, 30, 3_600, "seconds"),),
        clear_seconds=30,
        history="gpu",
    ),
    RuleKind("driver_hung", "gpu.driver", URGENT, driver, for_seconds=60, history="events"),
    RuleKind(
        "poll_failing",
        "account.poll",
        WARNING,
        poll_failing,
        (Threshold("failures", 3, 1, 50, "count"),),
        for_seconds=0,
        clear_seconds=0,
    ),
)
