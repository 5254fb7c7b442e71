"""POST /ingest/v1/enrol."""

from __future__ import annotations

import msgspec
from channels.db import database_sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from fleet.telemetry.enrolment import Enrolled, MachineTaken, TokenNotValid, enrol_machine
from fleet.telemetry.ingest.answers import config_json
from fleet.telemetry.ingest.bundle import AgentFile
from fleet.telemetry.ingest.errors import BadTokenError, BusyError, TakenError, UnavailableError
from fleet.telemetry.matching import Claim
from fleet.telemetry.sanitise import clean, clean_map
from fleet.telemetry.wire import Enrolment

# Enrolments run in the thread that pages use too; a flood of made-up tokens must leave it to them.
MAX_WAITING = 16
ENROLMENT_PREFIX = "rre_"
TOKEN_MAX_LENGTH = 100

_encode = msgspec.json.Encoder().encode


class Door:
    """Lets enrolments through to the database, only so many at a time."""

    def __init__(self) -> None:
        self._waiting = 0

    async def enrol(self, secret: str, body: Enrolment, *, ip_address: str | None) -> Enrolled:
        """Raises BadTokenError, TakenError, BusyError or UnavailableError."""
        if not secret.startswith(ENROLMENT_PREFIX) or len(secret) > TOKEN_MAX_LENGTH:
            raise BadTokenError("This is no enrolment token. Make one in Settings, Agents.")
        if self._waiting >= MAX_WAITING:
            raise BusyError("Too many machines enrol at once. Try again later.")
        self._waiting += 1
        try:
            return await take_enrolment(secret, body, ip_address=ip_address)
        finally:
            self._waiting -= 1


def claim_of(body: Enrolment, *, ip_address: str | None) -> Claim:
    return Claim(
        machine_id=clean(body.machine_id, 64),
        hostname=clean(body.hostname),
        version=clean(body.agent_version, 40),
        boot_id=clean(body.boot_id, 64),
        provider_ids={name: value for name, value in clean_map(body.provider_ids).items() if name and value},
        ip_address=ip_address,
    )


async def take_enrolment(secret: str, body: Enrolment, *, ip_address: str | None) -> Enrolled:
    """Raises BadTokenError, TakenError or UnavailableError."""
    claim = claim_of(body, ip_address=ip_address)
    enrol = database_sync_to_async(enrol_machine)
    try:
        enrolled: Enrolled = await enrol(secret=secret, claim=claim, now=timezone.now())
    except TokenNotValid as error:
        raise BadTokenError(str(error)) from None
    except MachineTaken as error:
        raise TakenError(str(error)) from None
    except DatabaseError as error:
        raise UnavailableError(f"The database cannot be reached ({type(error).__name__}). Try again.") from error
    return enrolled


def enrolled_answer(enrolled: Enrolled, *, file: AgentFile | None) -> bytes:
    agent = enrolled.agent
    config = config_json(
        interval_seconds=agent.interval_seconds,
        report_seconds=agent.report_seconds,
        paused=agent.paused,
        file=file,
    )
    return b'{"instance_id":%d,"token":%b,"config":%b}' % (agent.instance_id, _encode(enrolled.token.secret), config)
