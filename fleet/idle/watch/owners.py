"""Whose a GPU of a shared machine is: who has all of the processes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleet.costs.attribution.models import AttributionSpan, SplitMode, UnixUser
from fleet.costs.attribution.use import users_of
from fleet.telemetry.models import GpuLatest

# (team, machine or None for all of its machines, user of the machine) -> who that is.
_People = Mapping[tuple[int, int | None, str], str]


def owners_of(instance_ids: Sequence[int]) -> dict[int, str]:
    """By GPU, of the machines that are split by measured use. GPUs that several use, or nobody, are left out. Three queries."""
    spans = AttributionSpan.objects.filter(
        instance__in=instance_ids, period__upper_inf=True, split=SplitMode.MEASURED
    ).values("instance")
    rows = GpuLatest.objects.filter(gpu__instance__in=spans, gpu__removed_at=None, lost=False).exclude(processes=[])
    looked_at = list(rows.values_list("gpu_id", "gpu__instance_id", "gpu__instance__team_id", "processes"))
    people = _people({team for _gpu, _machine, team, _processes in looked_at})
    found = {}
    for gpu, machine, team, processes in looked_at:
        users = list(users_of(processes))
        if len(users) == 1 and users[0]:
            found[gpu] = people.get((team, machine, users[0])) or people.get((team, None, users[0])) or users[0]
    return found


def _people(teams: set[int]) -> _People:
    if not teams:
        return {}
    rows = UnixUser.objects.filter(team__in=teams, owner__isnull=False)
    return {
        (team, machine, name): owner
        for team, machine, name, owner in rows.values_list("team_id", "instance_id", "name", "owner__username")
    }
