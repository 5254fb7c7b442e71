"""Money as the summing would have left it: one call writes a machine's day, its group's day and its month."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from django.db import connection

from fleet.costs.spend.models import CostDay, CostGroup, CostGroupDay, CostMonth
from fleet.inventory.models import Instance, ProviderAccount
from fleet.states import GpuState
from fleet.teams.models import Project, Team, User

HOUR_SECONDS = 3600.0


def spend_on(
    team: Team,
    day: date,
    amount: Decimal | str | int,
    *,
    instance: Instance | None = None,
    account: ProviderAccount | None = None,
    project: Project | None = None,
    owner: User | None = None,
    job: str = "",
    labels: dict[str, str] | None = None,
    meter: str = "compute",
    currency: str = "USD",
    state: GpuState = GpuState.WORKING,
    states: Mapping[GpuState, Decimal | str | int] | None = None,
    gpu_seconds: Mapping[GpuState, float] | None = None,
    seconds: float = 24 * HOUR_SECONDS,
    unpriced_seconds: float = 0.0,
    gpu_model: str | None = None,
    market: str | None = None,
    tenancy: str | None = None,
    region: str | None = None,
    idle_share: bool = False,
) -> CostDay:
    """Adds to what was there. Without `states`, all of `amount` is of `state`; with them, they have to add up to it.

    What is not said of the machine is as `instance` has it; project, owner and labels are only what is said here.
    """
    owned = account or (instance.account if instance else ProviderAccount.objects.filter(team=team).first())
    assert owned is not None, "money is of an account"
    parts = {one: Decimal(value) for one, value in (states or {state: amount}).items()}
    assert sum(parts.values()) == Decimal(amount), "the states do not add up to the amount"
    group = group_of(
        team,
        owned,
        project=project,
        owner=owner,
        job=job,
        labels=labels or {},
        gpu_model=gpu_model if gpu_model is not None else (instance.gpu_model if instance else ""),
        market=market if market is not None else (instance.market if instance else ""),
        tenancy=tenancy if tenancy is not None else (instance.tenancy if instance else ""),
        region=region if region is not None else (instance.region if instance else ""),
        idle_share=idle_share,
    )
    sums: dict[str, Decimal | float] = {
        "amount": Decimal(amount),
        "seconds": seconds,
        "unpriced_seconds": unpriced_seconds,
        **{f"{one.value}_amount": value for one, value in parts.items()},
        **{f"{one.value}_gpu_seconds": value for one, value in (gpu_seconds or {}).items()},
    }
    row = {"team": team, "group": group, "meter": meter, "currency": currency}
    add_to(CostGroupDay, {**row, "day": day}, sums)
    add_to(CostMonth, {**row, "month": day.replace(day=1), "instance": instance}, sums)
    found = add_to(CostDay, {**row, "day": day, "instance": instance}, sums)
    assert isinstance(found, CostDay)
    return found


def group_of(team: Team, account: ProviderAccount, *, labels: dict[str, str], **fields: object) -> CostGroup:
    with connection.cursor() as cursor:
        cursor.execute("SELECT md5(jsonb(%s)::text)", [json.dumps(labels)])
        (digest,) = cursor.fetchone()
    return CostGroup.objects.get_or_create(
        team=team, account=account, labels_digest=digest, defaults={"labels": labels}, **fields
    )[0]


def add_to(
    model: type[CostDay | CostGroupDay | CostMonth], key: dict[str, object], sums: dict[str, Decimal | float]
) -> CostDay | CostGroupDay | CostMonth:
    found = model.objects.filter(**key).first() or model(**key, amount=Decimal(0))
    for name, value in sums.items():
        setattr(found, name, getattr(found, name) + value)
    found.save()
    return found
