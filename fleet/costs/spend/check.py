"""Whether the three tables of money say the same: each is what the days of machines add up to, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from django.db import connection
from psycopg import sql

from fleet.costs.spend.reading import AMOUNTS
from fleet.costs.spend.statements import GROUP_DAY_KEY, MONTH_KEY, SUMS
from fleet.teams.models import Team

EXACT = ("amount", *AMOUNTS.values())
# Seconds are floats: added up in another order they differ in the last digits.
CLOSE = tuple(name for name in SUMS if name not in EXACT)

_COMPARE = """
WITH summed AS (
    SELECT {expressions}, {sums} FROM cost_day WHERE team_id = %(team_id)s GROUP BY {places}
)
SELECT coalesce(summed.{when}, kept.{when}), coalesce(summed.group_id, kept.group_id), coalesce(summed.meter, kept.meter), {differs}
FROM summed FULL JOIN (SELECT * FROM {table} WHERE team_id = %(team_id)s) kept ON {same}
WHERE NOT coalesce({equal}, false)
"""
_STATES = """
SELECT day, group_id, meter, %(what)s FROM cost_day WHERE team_id = %(team_id)s AND amount <> {states}
"""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Of one row: `table` does not say what the days of machines add up to. `what`: which columns; all of them where a row is missing."""

    table: str
    day: date
    group_id: int
    meter: str
    what: str


def verify_sums(team: Team) -> list[Disagreement]:
    """Empty: cost_day, cost_group_day and cost_month agree, and every amount is what its seven states add up to."""
    return [
        *_states(team),
        *_compare(team, "cost_group_day", GROUP_DAY_KEY, {}),
        *_compare(team, "cost_month", MONTH_KEY, {"month": sql.SQL("date_trunc('month', day)::date AS month")}),
    ]


def _states(team: Team) -> Iterator[Disagreement]:
    states = sql.SQL(" + ").join([sql.Identifier(name) for name in AMOUNTS.values()])
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(_STATES).format(states=states), {"team_id": team.pk, "what": "amount"})
        rows = cursor.fetchall()
    return (Disagreement("cost_day", *row) for row in rows)


def _compare(
    team: Team, table: str, key: Sequence[str], expressions: dict[str, sql.Composable]
) -> Iterator[Disagreement]:
    same = [
        _both(
            "coalesce(summed.{0}, 0) = coalesce(kept.{0}, 0)" if name == "instance_id" else "summed.{0} = kept.{0}",
            name,
        )
        for name in key
    ]
    equal = {name: _both("summed.{0} = kept.{0}", name) for name in EXACT}
    equal |= {name: _both("abs(summed.{0} - kept.{0}) <= 0.001 + 1e-9 * abs(kept.{0})", name) for name in CLOSE}
    differs = [
        sql.SQL("CASE WHEN NOT coalesce({}, false) THEN {} END").format(one, sql.Literal(name))
        for name, one in equal.items()
    ]
    query = sql.SQL(_COMPARE).format(
        expressions=sql.SQL(", ").join([expressions.get(name, sql.Identifier(name)) for name in key]),
        sums=sql.SQL(", ").join([_both("sum({0}) AS {0}", name) for name in SUMS]),
        places=sql.SQL(", ").join([sql.SQL(str(place)) for place in range(1, len(key) + 1)]),
        when=sql.Identifier(key[1]),
        table=sql.Identifier(table),
        same=sql.SQL(" AND ").join(same),
        equal=sql.SQL(" AND ").join(list(equal.values())),
        differs=sql.SQL("concat_ws(', ', {})").format(sql.SQL(", ").join(differs)),
    )
    with connection.cursor() as cursor:
        cursor.execute(query, {"team_id": team.pk})
        rows = cursor.fetchall()
    return (Disagreement(table, *row) for row in rows)


def _both(expression: str, name: str) -> sql.Composed:
    return sql.SQL(expression).format(sql.Identifier(name))
