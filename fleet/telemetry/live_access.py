"""Which machines open sockets may hear of, asked for all sockets of a process in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from channels.db import database_sync_to_async
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from fleet.inventory.models import Instance
from fleet.teams.models import Team
from fleet.teams.standing import teams_still_seen

MAX_MACHINES = 2_000


@dataclass(frozen=True, slots=True)
class Watch:
    """What one page shows to the browser of this session; without `machines`, all of the team, those that come later included."""

    session_key: str
    team: str
    machines: frozenset[int] | None


def machines_of_watches(watches: Sequence[Watch]) -> list[set[int] | None]:
    """For each, the ids to listen to, or None: not a member (any more), signed out, or a machine that is not the team's."""
    teams = teams_still_seen({(watch.session_key, watch.team) for watch in watches})
    seen = [teams.get((watch.session_key, watch.team)) for watch in watches]
    pairs = list(zip(watches, seen, strict=True))
    named = _named(pk for watch, team in pairs if team for pk in watch.machines or ())
    whole = _whole({team.pk for watch, team in pairs if team and watch.machines is None})
    return [_of_watch(watch, team, named, whole) for watch, team in pairs]


watched_machines = database_sync_to_async(machines_of_watches)


def _of_watch(watch: Watch, team: Team | None, named: dict[int, int], whole: dict[int, set[int]]) -> set[int] | None:
    if team is None:
        return None
    if watch.machines is None:
        return whole.get(team.pk, set())
    return set(watch.machines) if all(named.get(pk) == team.pk for pk in watch.machines) else None


def _named(ids: Iterator[int]) -> dict[int, int]:
    """The team of each of these machines that is not gone."""
    return dict(Instance.objects.filter(pk__in=set(ids), gone_at=None).values_list("pk", "team_id"))


def _whole(team_ids: set[int]) -> dict[int, set[int]]:
    """The first MAX_MACHINES of each team."""
    place = Window(RowNumber(), partition_by=F("team_id"), order_by="pk")
    first = Instance.objects.filter(team__in=team_ids, gone_at=None).annotate(place=place)
    found: dict[int, set[int]] = {}
    for team_id, pk in first.filter(place__lte=MAX_MACHINES).values_list("team_id", "pk"):
        found.setdefault(team_id, set()).add(pk)
    return found
