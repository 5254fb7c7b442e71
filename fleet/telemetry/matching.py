"""Which machine an enrolling agent is on: one that reported before, one that a provider lists, or none that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.inventory.models import Instance
from fleet.teams.models import Team
from fleet.telemetry.models import Agent, EnrolmentToken

# An agent is there for as long as this after it was last heard: nobody else gets its place by naming its machine's id.
THERE_FOR = timedelta(minutes=5)

# Why it was not decided by itself which machine an agent is on (Agent.match_conflict).
SEVERAL = "several"
TAKEN = "taken"
REVOKED = "revoked"
SAME_ID = "same_id"
SHARED = "shared"
ADDRESS = "address"
# Where an agent's word for a cloud is not that of its adapter, and where the id that a machine knows of itself is listed.
KINDS = {"gcp": "google"}
BESIDE = {"azure_vm_id": "extra__vm_id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an agent says of its machine when it enrols: cleaned strings, none of them believed beyond its own team."""

    machine_id: str
    hostname: str
    version: str = ""
    boot_id: str = ""
    provider_ids: Mapping[str, str] = field(default_factory=dict)
    ip_address: str | None = None


def earlier_agents(token: EnrolmentToken, claim: Claim) -> list[Agent]:
    """Agents that named this machine's id before, the newest first, locked. A clone that shows other provider ids is another machine."""
    if not claim.machine_id:
        return []
    mine = Agent.objects.select_related("instance__team").filter(
        instance__team=token.team_id, instance__gone_at=None, machine_id=claim.machine_id
    )
    if token.instance_id:
        mine = mine.filter(instance=token.instance_id)
    found = mine.select_for_update(of=("self",)).order_by("-enrolled_at")
    return [agent for agent in found if not _contradicts(agent.provider_ids, claim.provider_ids)]


def _contradicts(known: Mapping[str, str], claimed: Mapping[str, str]) -> bool:
    return any(known[name] != claimed[name] for name in known.keys() & claimed.keys())


def same_machine(earlier: list[Agent], claim: Claim, now: datetime) -> Agent | None:
    """The agent whose place this machine may have without being asked: of the same boot, or else one that has fallen silent.

    A machine's id alone is no proof: copies of one image share it, and whoever knows it can name it.
    """
    allowed = [agent for agent in earlier if agent.revoked_at is None]
    same_boot = [agent for agent in allowed if claim.boot_id and agent.boot_id == claim.boot_id]
    silent = [agent for agent in allowed if now - _last_heard_at(agent) >= THERE_FOR]
    return next(iter(same_boot or silent), None)


def _last_heard_at(agent: Agent) -> datetime:
    return max(at for at in (agent.enrolled_at, agent.heartbeat_at, agent.batch_at) if at is not None)


def place_of_revoked(earlier: list[Agent], token: EnrolmentToken) -> Instance | None:
    """The machine whose agent was revoked before somebody made this token: so it may come back."""
    return next((agent.instance for agent in earlier if agent.revoked_at and agent.revoked_at < token.created_at), None)


def match_instance(*, token: EnrolmentToken, provider_ids: Mapping[str, str]) -> tuple[Instance | None, str]:
    """The team's listed machine that these ids name, one to one, or None and why not ("" = there was nothing to match).

    An id counts only for accounts of its own provider: `aws_instance_id` never names a machine of another kind.
    """
    found = listed_candidates(team=token.team, provider_ids=provider_ids)
    if not found:
        return None, ""
    if len(found) > 1:
        return None, SEVERAL
    agent = Agent.objects.filter(instance=found[0]).first()
    if agent is None or (agent.revoked_at and agent.revoked_at < token.created_at):
        return found[0], ""
    return None, REVOKED if agent.revoked_at else TAKEN


def listed_candidates(*, team: Team, provider_ids: Mapping[str, str]) -> list[Instance]:
    if not provider_ids:
        return []
    wanted = Q()
    for name, value in provider_ids.items():
        prefix = name.partition("_")[0]
        kind = Q(account__kind=KINDS.get(prefix, prefix))
        # Of some machines the list keeps what they call themselves beside the name by which their provider finds them.
        beside = Q(**{f"{BESIDE[name]}__iexact": value}) if name in BESIDE else Q(pk=None)
        wanted |= kind & (Q(external_id=value) | beside)
    return list(Instance.objects.filter(wanted, team=team, gone_at=None).order_by("pk")[:5])


def at_address(*, team: Team, address: str | None) -> list[Instance]:
    """Listed machines without an agent that are reached at an address. Many share one behind a gateway: a hint, never a match."""
    if not address:
        return []
    listed = Instance.objects.filter(team=team, gone_at=None, agent=None, ssh__contains=[{"host": address}])
    return list(listed.order_by("pk")[:5])


def candidates(agent: Agent) -> list[Instance]:
    """Which machines a person may say that an agent with a conflict is on."""
    team = agent.instance.team
    if agent.match_conflict == SAME_ID:
        same = Instance.objects.filter(team=team, gone_at=None, agent__machine_id=agent.machine_id)
        found = list(same.order_by("pk")[:5])
    elif agent.match_conflict == ADDRESS:
        found = at_address(team=team, address=agent.enrolled_from)
    else:
        found = listed_candidates(team=team, provider_ids=agent.provider_ids)
    return [instance for instance in found if instance.pk != agent.instance_id]
