"""Lists of offers that a team brings itself: imported whole, replaced whole by the same name, removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from fleet.inventory.offers.models import OfferSource, SourceKind
from fleet.inventory.offers.rows import Values
from fleet.inventory.offers.store import replace_offers
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team


@transaction.atomic
def import_list(*, actor: Actor, team: Team, name: str, rows: Sequence[Values], now: datetime) -> OfferSource:
    """`rows` of a sheet without faults. They take the place of all rows of the team's list of this name."""
    source, is_new = OfferSource.objects.update_or_create(
        team=team, kind=SourceKind.IMPORT, name=name, defaults={"read_at": now}
    )
    count = replace_offers(source, rows, now=now)
    record(
        actor=actor, team=team, action="offer_list.import", target=source, new={"offers": count, "replaced": not is_new}
    )
    return source


@transaction.atomic
def remove_list(*, actor: Actor, source: OfferSource) -> None:
    """Only lists that a team imported: the others come back by themselves."""
    assert source.kind == SourceKind.IMPORT
    record(actor=actor, team=source.team, action="offer_list.remove", target=source)
    source.delete()
