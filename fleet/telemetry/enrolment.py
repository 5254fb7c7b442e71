"""How a machine becomes known: tokens that let agents in, and which machine an agent belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team
from fleet.teams.secrets import NewToken, hash_token, new_token
from fleet.telemetry.machines import add_own_machine
from fleet.telemetry.matching import (
    ADDRESS,
    SAME_ID,
    Claim,
    at_address,
    earlier_agents,
    match_instance,
    place_of_revoked,
    same_machine,
)
from fleet.telemetry.models import Agent, EnrolmentToken

DEFAULT_LIFETIME = timedelta(hours=24)
MAX_LIFETIME = timedelta(days=365)
MAX_USES = 10_000


class EnrolmentRefused(Exception):
    """The token does not let this machine in. The text says why and what to do."""


class TokenNotValid(EnrolmentRefused):
    pass


class MachineTaken(EnrolmentRefused):
    pass


class InvalidToken(ValueError):
    """A token cannot be made like this; `field` names what is wrong."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field = field_name


@dataclass(frozen=True, slots=True)
class Enrolled:
    agent: Agent
    token: NewToken


@transaction.atomic
def create_enrolment_token(
    *,
    actor: Actor,
    team: Team,
    instance: Instance | None = None,
    project: Project | None = None,
    max_uses: int = 1,
    lifetime: timedelta = DEFAULT_LIFETIME,
) -> tuple[EnrolmentToken, NewToken]:
    """A token for any machine of the team, or for one instance (then used once). Raises InvalidToken."""
    _check_new(team, instance, project, max_uses, lifetime)
    secret = new_token("rre")
    now = timezone.now()
    token = EnrolmentToken.objects.create(
        team=team,
        instance=instance,
        project=project,
        token_hash=secret.hash,
        prefix=secret.prefix,
        created_by=actor.user,
        created_at=now,
        expires_at=now + lifetime,
        max_uses=1 if instance else max_uses,
    )
    new = {"prefix": token.prefix, "max_uses": token.max_uses, "expires_at": token.expires_at.isoformat()}
    if instance:
        new["instance"] = instance.name
    record(actor=actor, team=team, action="enrolment_token.create", target=token, new=new)
    return token, secret


def _check_new(
    team: Team, instance: Instance | None, project: Project | None, max_uses: int, lifetime: timedelta
) -> None:
    if instance is not None and instance.team_id != team.pk:
        raise InvalidToken("instance", "The machine belongs to another team.")
    if project is not None and project.team_id != team.pk:
        raise InvalidToken("project", "The project belongs to another team.")
    if not 1 <= max_uses <= MAX_USES:
        raise InvalidToken("max_uses", f"Let in between 1 and {MAX_USES} machines.")
    if not timedelta(0) < lifetime <= MAX_LIFETIME:
        raise InvalidToken("lifetime", f"Choose a lifetime of at most {MAX_LIFETIME.days} days.")


@transaction.atomic
def revoke_enrolment_token(*, actor: Actor, token: EnrolmentToken) -> bool:
    """Machines that it let in stay. False when it was revoked already."""
    changed = EnrolmentToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    if changed:
        record(
            actor=actor, team=token.team, action="enrolment_token.revoke", target=token, new={"prefix": token.prefix}
        )
    return bool(changed)


def enrol_machine(*, secret: str, claim: Claim, now: datetime) -> Enrolled:
    """Give the machine an agent token of its own. Raises TokenNotValid or MachineTaken.

    The same machine enrolling again, with a token that is neither expired nor revoked, keeps its instance and uses nothing up:
    its first answer may have been lost on the way. A revoked agent comes back only like one that was never there.
    """
    try:
        with transaction.atomic():
            token = _valid_token(secret, now)
            earlier = earlier_agents(token, claim)
            known = same_machine(earlier, claim, now)
            if known is not None:
                return _replace_token(known, claim, now)
            _use(token, now)
            return _let_in(token, claim, earlier, now)
    except IntegrityError:
        # Another machine took the instance between our look and our insert.
        raise MachineTaken("Another machine has just taken this place. Make a new token in Settings, Agents.") from None


def _valid_token(secret: str, now: datetime) -> EnrolmentToken:
    token = (
        EnrolmentToken.objects.select_related("team", "instance", "project")
        .filter(token_hash=hash_token(secret))
        .first()
    )
    if token is None:
        raise TokenNotValid("The enrolment token is not known. Make a new one in Settings, Agents.")
    if token.revoked_at is not None:
        raise TokenNotValid("The enrolment token was revoked. Make a new one in Settings, Agents.")
    if token.expires_at <= now:
        raise TokenNotValid("The enrolment token has expired. Make a new one in Settings, Agents.")
    if token.instance and token.instance.gone_at is not None:
        raise TokenNotValid("The machine of this enrolment token is gone. Make a new one in Settings, Agents.")
    return token


def _replace_token(agent: Agent, claim: Claim, now: datetime) -> Enrolled:
    token = new_token("rra")
    agent.token_hash, agent.prefix = token.hash, token.prefix
    agent.enrolled_at = now
    _say(agent, claim)
    agent.save()
    _record(agent, claim, "agent.enrol_again")
    return Enrolled(agent, token)


def _use(token: EnrolmentToken, now: datetime) -> None:
    """Count one use, or find that none is left: the row decides, whoever asks at the same moment."""
    usable = EnrolmentToken.objects.filter(Q(pk=token.pk, revoked_at=None, expires_at__gt=now), uses__lt=F("max_uses"))
    if usable.update(uses=F("uses") + 1):
        return
    if token.instance_id:
        raise MachineTaken(
            "This token was for one machine, and another machine has used it. Make a new one in Settings, Agents."
        )
    raise TokenNotValid(
        "The enrolment token has let in as many machines as it may. Make a new one in Settings, Agents."
    )


def _let_in(token: EnrolmentToken, claim: Claim, earlier: list[Agent], now: datetime) -> Enrolled:
    if token.instance:
        _check_not_revoked_since(token, earlier)
        return _attach(token.instance, claim, now, conflict="")
    instance, conflict = match_instance(token=token, provider_ids=claim.provider_ids)
    if instance is None and not conflict:
        instance, conflict = _unlisted_place(token, earlier)
    if instance is None:
        if not conflict and at_address(team=token.team, address=claim.ip_address):
            conflict = ADDRESS
        instance = add_own_machine(
            actor=_actor(claim), team=token.team, hostname=claim.hostname, project=token.project, now=now
        )
    return _attach(instance, claim, now, conflict=conflict)


def _check_not_revoked_since(token: EnrolmentToken, earlier: list[Agent]) -> None:
    if any(agent.revoked_at and agent.revoked_at >= token.created_at for agent in earlier):
        raise MachineTaken(
            "The agent of this machine was revoked after this token was made. Make a new one in Settings, Agents."
        )


def _unlisted_place(token: EnrolmentToken, earlier: list[Agent]) -> tuple[Instance | None, str]:
    """For a machine that no provider's id names: where its revoked agent was, or an entry of its own, and why."""
    if any(agent.revoked_at is None for agent in earlier):
        return None, SAME_ID
    return place_of_revoked(earlier, token), ""


def _attach(instance: Instance, claim: Claim, now: datetime, *, conflict: str) -> Enrolled:
    if Agent.objects.filter(instance=instance, revoked_at=None).exists():
        raise MachineTaken(
            "Another agent already reports for this machine. Revoke it in Settings, Agents, and enrol again."
        )
    Agent.objects.filter(instance=instance).delete()
    token = new_token("rra")
    agent = Agent(
        instance=instance,
        token_hash=token.hash,
        prefix=token.prefix,
        enrolled_at=now,
        enrolled_from=claim.ip_address,
        match_conflict=conflict,
    )
    _say(agent, claim)
    agent.save()
    _record(agent, claim, "agent.enrol")
    return Enrolled(agent, token)


def _say(agent: Agent, claim: Claim) -> None:
    agent.machine_id, agent.hostname = claim.machine_id, claim.hostname
    agent.version, agent.boot_id = claim.version, claim.boot_id
    agent.provider_ids = dict(claim.provider_ids)


def _actor(claim: Claim) -> Actor:
    return Actor(None, f"agent on {claim.hostname or 'a machine without a name'}", "agent", claim.ip_address)


def _record(agent: Agent, claim: Claim, action: str) -> None:
    new = {"prefix": agent.prefix, "hostname": claim.hostname, "conflict": agent.match_conflict}
    record(actor=_actor(claim), team=agent.instance.team, action=action, target=agent.instance, new=new)
