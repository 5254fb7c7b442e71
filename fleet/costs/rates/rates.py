"""Exchange rates of a team: typed, imported, removed. Sums are converted when they are read, so that a rate counts at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.db.models import Max

from fleet.costs.rates.sheet import Rate
from fleet.costs.spend.models import ExchangeRate
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

# Their day has begun where clocks are ahead of the team's.
AHEAD = timedelta(days=1)
BATCH = 2_000

_WITHOUT_RATE = """
SELECT used.currency FROM (SELECT DISTINCT currency FROM cost_month WHERE team_id = %(team_id)s) used
WHERE used.currency <> %(into)s AND NOT EXISTS (
    SELECT FROM exchange_rate rate WHERE rate.team_id = %(team_id)s
    AND (rate.currency, rate.into) IN ((used.currency, %(into)s), (%(into)s, used.currency))
) ORDER BY 1
"""


def latest_day(team: Team, now: datetime) -> date:
    """The last day that a rate may be of."""
    return now.astimezone(ZoneInfo(team.time_zone)).date() + AHEAD


@transaction.atomic
def set_rate(*, actor: Actor, team: Team, rate: Rate, now: datetime) -> ExchangeRate:
    """In place of the one of the same day, if there is one."""
    same = ExchangeRate.objects.filter(team=team, currency=rate.currency, into=rate.into, day=rate.day)
    before = same.select_for_update().first()
    row, _made = ExchangeRate.objects.update_or_create(
        team=team,
        currency=rate.currency,
        into=rate.into,
        day=rate.day,
        defaults={"rate": rate.rate, "source": rate.source, "created_by": actor.user, "created_at": now},
    )
    old = {"rate": str(before)} if before else {}
    record(actor=actor, team=team, action="exchange_rate.set", target=row, old=old, new={"rate": str(row)})
    return row


@transaction.atomic
def import_rates(*, actor: Actor, team: Team, rates: Sequence[Rate], now: datetime) -> int:
    """`rates` of a sheet without faults. Rates of the same days are replaced; the others stay. Answers how many there were."""
    ExchangeRate.objects.bulk_create(
        [
            ExchangeRate(
                team=team,
                currency=one.currency,
                into=one.into,
                day=one.day,
                rate=one.rate,
                source=one.source,
                created_by=actor.user,
                created_at=now,
            )
            for one in rates
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["team", "currency", "into", "day"],
        update_fields=["rate", "source", "created_by", "created_at"],
    )
    pairs = sorted({f"{one.currency}/{one.into}" for one in rates})
    record(actor=actor, team=team, action="exchange_rate.import", new={"rates": len(rates), "pairs": ", ".join(pairs)})
    return len(rates)


@transaction.atomic
def remove_rate(*, actor: Actor, rate: ExchangeRate) -> None:
    """Days that it converted take the rate before it; if there is none, they stay in their own currency."""
    record(actor=actor, team=rate.team, action="exchange_rate.remove", target=rate, old={"rate": str(rate)})
    rate.delete()


def currencies_without_rate(team: Team) -> list[str]:
    """In which something was charged, and which no rate leads from to the team's own."""
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_RATE, {"team_id": team.pk, "into": team.currency})
        return [currency for (currency,) in cursor.fetchall()]


def newest_days(team: Team) -> dict[tuple[str, str], date]:
    """The day of the newest rate of each pair."""
    rows = ExchangeRate.objects.filter(team=team).values_list("currency", "into").annotate(newest=Max("day"))
    return {(currency, into): newest for currency, into, newest in rows.order_by("currency", "into")}
