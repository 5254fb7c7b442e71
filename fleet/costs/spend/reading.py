"""The query behind `spend`: which of the three tables answers, how it is told apart and filtered, and at which rates it is converted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

from django.db import connection
from psycopg import sql

from fleet.costs.spend.converting import Stretch, split_months
from fleet.costs.spend.figures import By, Where
from fleet.states import GpuState

# GPU-seconds are of what runs.
RUNNING = tuple(state for state in GpuState if state is not GpuState.STOPPED)
AMOUNTS: Mapping[GpuState, str] = {state: f"{state.value}_amount" for state in GpuState}
GPU_SECONDS: Mapping[GpuState, str] = {state: f"{state.value}_gpu_seconds" for state in RUNNING}


@dataclass(frozen=True, slots=True)
class Question:
    """Days [start, end)."""

    team_id: int
    start: date
    end: date
    by: tuple[By, ...]
    where: Where
    label: str

    @property
    def names_machines(self) -> bool:
        return By.MACHINE in self.by or bool(self.where.instances)

    def months(self) -> list[date]:
        """First days of the months that begin in the span; of the last one, days may lie beyond `end`."""
        first = self.start if self.start.day == 1 else next_month(self.start)
        found = []
        while first < self.end:
            found.append(first)
            first = next_month(first)
        return found


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the answer. `key`: the values of every dimension but STATE. `converted`: `states` at the rates from `first_rate` to `last_rate`
    (places in the list of stretches); None: there is none, or none is needed.
    """

    key: tuple[object, ...]
    currency: str
    states: dict[GpuState, Decimal]
    converted: dict[GpuState, Decimal] | None
    gpu_seconds: dict[GpuState, float]
    unpriced_seconds: float
    first_rate: int | None
    last_rate: int | None


# Days of groups are far fewer than days of machines, and months of machines fewer still.
_GROUP_DAYS = "SELECT {columns}, day, NULL::bigint AS instance_id FROM cost_group_day WHERE {span}"
_DAYS = "SELECT {columns}, day, instance_id FROM cost_day WHERE {span}"
_MONTHS = "SELECT {columns}, month AS day, instance_id FROM cost_month WHERE {span}"
_IN_SPAN = "team_id = %(team_id)s AND day >= %(start)s AND day < %(end)s"
# Whole months, but those of a currency whose rate changes within: these are read by the day, as are the days before and after.
# The last month is whole also if nothing of it lies beyond the span: of the present month nothing is to come.
_WHOLE = "team_id = %(team_id)s AND month >= %(head)s AND month < (SELECT tail FROM ending) AND (currency, month) NOT IN (SELECT * FROM split)"
_EDGES = """team_id = %(team_id)s
    AND (day >= %(start)s AND day < %(head)s OR day >= greatest((SELECT tail FROM ending), %(start)s) AND day < %(end)s)"""
_SPLIT = """team_id = %(team_id)s AND day >= %(head)s AND day < (SELECT tail FROM ending)
    AND (currency, date_trunc('month', day)::date) IN (SELECT * FROM split)"""
_READ = """
WITH split AS MATERIALIZED (
    SELECT * FROM unnest(%(split_currencies)s::text[], %(split_months)s::date[]) AS one (currency, month)
), ending AS MATERIALIZED (
    SELECT CASE WHEN EXISTS (SELECT FROM cost_day WHERE team_id = %(team_id)s AND day >= %(end)s AND day < %(past_last)s)
        THEN %(last)s::date ELSE %(past_last)s::date END AS tail
), line AS ({source})
SELECT {keys}, line.currency, min(rate.number), max(rate.number), {charged}, {converted}, {gpu_seconds}, sum(line.unpriced_seconds)
FROM line JOIN cost_group AS "group" ON "group".id = line.group_id
JOIN fleet_provideraccount AS account ON account.id = "group".account_id
LEFT JOIN unnest(%(currencies)s::text[], %(days)s::date[], %(factors)s::numeric[], %(numbers)s::int[])
    AS rate (currency, day, factor, number) ON rate.currency = line.currency AND rate.day = line.day
WHERE {where} GROUP BY {group_by}
"""
_KEYS = {
    By.DAY: "line.day",
    By.MONTH: "date_trunc('month', line.day)::date",
    By.PROJECT: '"group".project_id',
    By.OWNER: '"group".owner_id',
    By.ACCOUNT: '"group".account_id',
    By.PROVIDER: "account.kind",
    By.MACHINE: "line.instance_id",
    By.METER: "line.meter",
    By.GPU_MODEL: '"group".gpu_model',
    By.MARKET: '"group".market',
    By.TENANCY: '"group".tenancy',
    By.REGION: '"group".region',
    By.JOB: '"group".job',
    By.LABEL: '"group".labels ->> %(label)s',
}


def read(question: Question, rates: Sequence[Stretch]) -> Iterator[Line]:
    keys = [sql.SQL(_KEYS[one]) for one in question.by if one is not By.STATE]
    parameters: dict[str, Any] = {
        "team_id": question.team_id,
        "start": question.start,
        "end": question.end,
        "label": question.label,
    }
    parameters |= _rate_parameters(rates) | _month_parameters(question, rates)
    where, filters = _where(question.where)
    query = sql.SQL(_READ).format(
        source=_source(question),
        keys=_joined([*keys, sql.SQL("rate.factor IS NOT NULL")]),
        charged=_sums("sum(line.{})", AMOUNTS),
        # Most teams have one currency: nothing is multiplied where there is nothing to convert with.
        converted=_sums("sum(line.{} * rate.factor)" if rates else "NULL::numeric", AMOUNTS),
        gpu_seconds=_sums("sum(line.{})", GPU_SECONDS),
        where=where,
        group_by=_joined([sql.SQL(str(place)) for place in range(1, len(keys) + 3)]),
    )
    with connection.cursor() as cursor:
        cursor.execute(query, parameters | filters)
        rows = cursor.fetchall()
    return (_line(row, len(keys)) for row in rows)


def _line(row: tuple[Any, ...], keys: int) -> Line:
    cells = iter(row[keys:])
    converts, currency, first_rate, last_rate = (next(cells) for _ in range(4))
    states = {state: next(cells) for state in AMOUNTS}
    converted = {state: next(cells) for state in AMOUNTS}
    gpu_seconds = {state: next(cells) for state in GPU_SECONDS}
    return Line(
        row[:keys],
        currency,
        states,
        converted if converts else None,
        gpu_seconds,
        unpriced_seconds=next(cells),
        first_rate=first_rate,
        last_rate=last_rate,
    )


def _joined(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _sums(expression: str, columns: Mapping[GpuState, str]) -> sql.Composed:
    return _joined([sql.SQL(expression).format(sql.Identifier(name)) for name in columns.values()])


def _source(question: Question) -> sql.Composed:
    columns = _joined(
        [
            sql.Identifier(name)
            for name in ("group_id", "currency", "meter", "unpriced_seconds", *AMOUNTS.values(), *GPU_SECONDS.values())
        ]
    )
    days = _DAYS if question.names_machines else _GROUP_DAYS
    if By.DAY in question.by or not question.months():
        parts = [(days, _IN_SPAN)]
    else:
        parts = [(_MONTHS, _WHOLE), (days, _EDGES), (days, _SPLIT)]
    return sql.SQL(" UNION ALL ").join(
        [sql.SQL(table).format(columns=columns, span=sql.SQL(span)) for table, span in parts]
    )


def _rate_parameters(rates: Sequence[Stretch]) -> dict[str, Any]:
    """A row for each day, so that the join is by equality: a stretch would be compared with every day there is."""
    found = [(one.currency, day, one.factor, number) for number, one in zip(count(), rates) for day in one.days()]
    names = ("currencies", "days", "factors", "numbers")
    return {name: [row[place] for row in found] for place, name in enumerate(names)}


def _month_parameters(question: Question, rates: Sequence[Stretch]) -> dict[str, Any]:
    months = question.months() or [question.end]
    split = sorted(split_months(rates) & {(one.currency, month) for one in rates for month in months})
    return {
        "head": months[0],
        "last": months[-1],
        "past_last": next_month(months[-1]),
        "split_currencies": [currency for currency, _month in split],
        "split_months": [month for _currency, month in split],
    }


def _where(where: Where) -> tuple[sql.Composed, dict[str, Any]]:
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    columns: list[tuple[str, str, Sequence[object]]] = [
        ("projects", '"group".project_id', where.projects),
        ("owners", '"group".owner_id', where.owners),
        ("accounts", '"group".account_id', where.accounts),
        ("instances", "line.instance_id", where.instances),
        ("meters", "line.meter", where.meters),
    ]
    for name, column, wanted in columns:
        if not wanted:
            continue
        nobody = f" OR {column} IS NULL" if None in wanted else ""
        conditions.append(f"({column} = ANY(%({name})s){nobody})")
        parameters[name] = [one for one in wanted if one is not None]
    for number, (name, value) in enumerate(where.labels.items()):
        conditions.append(f'"group".labels ->> %(label_{number})s = %(value_{number})s')
        parameters |= {f"label_{number}": name, f"value_{number}": value}
    return sql.SQL(" AND ").join([sql.SQL(one) for one in conditions or ["true"]]), parameters


def next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
