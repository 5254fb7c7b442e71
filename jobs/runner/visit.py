"""One visit to the machines of an attempt, all at once: what is to be done on each, then a look and what its log has grown by. No database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, SshAddress, open_ssh
from jobs.logs.part import Part
from jobs.runner.course import Act
from jobs.runner.machine import READ_BYTES, Machine, RunnerError, Seen, SentFile

CONNECT_SECONDS = 20.0
# Reading what a log has grown by; the next visit goes on from there.
READ_SECONDS = 8.0
# Further behind than that, the middle of a log is passed over: nobody reads it, and a chatty job must not hold up the others.
BEHIND_BYTES = 32 * 1024 * 1024
# What is read of its end then.
END_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be done on one node. `addresses`: with the host key that is pinned for each, "" = none; tried in their order."""

    node: int
    marker: str
    act: Act
    addresses: Sequence[tuple[SshAddress, str]]
    private_key: str = field(repr=False)
    log_offset: int = 0
    files: Sequence[SentFile] = field(default=(), repr=False)
    upload: bytes = field(default=b"", repr=False)
    meeting: Mapping[str, Any] = field(default_factory=dict, repr=False)
    # Of the text of install.sh.
    install: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. `error` "" = it was reached, and did what it should. `offered`: a host key that nobody confirmed yet. `met`: what it said of the others;
    `facts`: of itself. `ran_dry`: the machine gave less of the log than it says there is, so that nothing more is to come.
    """

    node: int
    act: Act
    address: SshAddress | None = None
    seen: Seen | None = None
    parts: tuple[Part, ...] = ()
    ran_dry: bool = False
    signalled: int = 0
    interfaces: tuple[str, ...] = ()
    met: Mapping[str, str] | None = None
    facts: Mapping[str, str] | None = None
    error: str = ""
    detail: str = ""
    offered: str = ""
    offered_by: SshAddress | None = None


async def visit_all(errands: Iterable[Errand], *, guard: Guard) -> list[Report]:
    return list(await asyncio.gather(*(visit(errand, guard=guard) for errand in errands)))


async def visit(errand: Errand, *, guard: Guard) -> Report:
    """By the first address that lets us in; what the last one said where none does."""
    report = Report(errand.node, errand.act, error="no_address")
    for address, pinned in errand.addresses:
        report = await _by(errand, address, pinned, guard)
        if report.error not in {"unreachable", "timeout", "broken", "refused_address", "no_shell"}:
            break
    return report


async def _by(errand: Errand, address: SshAddress, pinned: str, guard: Guard) -> Report:
    report = Report(errand.node, errand.act, address)
    try:
        async with (
            asyncio.timeout(CONNECT_SECONDS) as connecting,
            open_ssh(address, guard=guard, private_key=errand.private_key, pinned=pinned) as connection,
        ):
            connecting.reschedule(None)
            return await _do(errand, Machine(connection, errand.marker), report)
    except TimeoutError:
        return replace(report, error="timeout")
    except RefusedAddressError:
        return replace(report, error="refused_address", detail=address.host)
    except RemoteError as error:
        by = error.at or address
        return replace(report, error=error.code, detail=error.detail, offered=error.offered, offered_by=by)
    except RunnerError as error:
        return replace(report, error=error.code, detail=error.detail)


async def _do(errand: Errand, machine: Machine, report: Report) -> Report:
    match errand.act:
        case Act.PREPARE:
            if errand.upload:
                await machine.unpack(errand.upload)
            await machine.prepare(errand.files)
            return replace(report, facts=await machine.facts())
        case Act.INSTALL:
            await machine.install(errand.install)
        case Act.ASK:
            return replace(report, interfaces=tuple(await machine.interfaces()))
        case Act.MEET:
            return replace(report, met=await machine.meet(errand.meeting))
        case Act.LAUNCH:
            await machine.launch()
        case Act.TERM | Act.KILL:
            report = replace(report, signalled=await machine.signal("TERM" if errand.act is Act.TERM else "KILL"))
    seen = await machine.look()
    parts, ran_dry = await _grown(machine, errand.log_offset, seen)
    # Once more: with what was installed.
    facts = await machine.facts() if errand.act is Act.INSTALL and seen.install_code == 0 else None
    return replace(report, seen=seen, parts=parts, ran_dry=ran_dry, facts=facts)


async def _grown(machine: Machine, offset: int, seen: Seen) -> tuple[tuple[Part, ...], bool]:
    """Up to where the log stood as it was looked at. Of a job that runs, a line that has no end yet waits for the next visit."""
    parts: list[Part] = []
    until = time.monotonic() + READ_SECONDS
    while offset < seen.log_size and time.monotonic() < until:
        # How a run began is read in any case.
        skipped = seen.log_size - offset - END_BYTES if offset and seen.log_size - offset > BEHIND_BYTES else 0
        begin = offset + skipped
        data = await machine.read_log(begin, min(READ_BYTES, seen.log_size - begin))
        if not data:
            return tuple(parts), True
        parts.append(Part(begin, data, skipped))
        offset = begin + len(data)
    return tuple(parts), False
