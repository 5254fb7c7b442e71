"""Reads what right-sizing reckons with, in as many queries for many machines as for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.db import connection

from fleet.costs.rightsizing.sizing.evidence import WINDOW
from fleet.costs.rightsizing.sizing.figures import Candidate, Measured
from fleet.costs.rightsizing.sizing.speed import known_gpus
from fleet.costs.rightsizing.statements import CARDS, GPUS, HOSTS
from fleet.costs.spend.converting import rates_into
from fleet.inventory.models import Instance
from fleet.inventory.offers.models import Offer, SourceKind
from fleet.providers.base import InstanceState, Market, Tenancy
from fleet.providers.gpus import NAMES
from fleet.providers.registry import adapters
from fleet.teams.models import Team
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.serving.models import ServingLatest

MIB = 2**20
GB = 10**9
BYTES_PER_MEGABIT = 125_000
# A live list is as good as its last reading; a dated price is a sample of its day.
LIVE_FOR = timedelta(hours=24)
DATED_FOR = timedelta(days=30)
# Of offers that differ in no more than what stands around the GPUs, so many of the cheapest.
ALIKE = 6

Rates = dict[str, Decimal]
Readings = dict[int, tuple[Any, ...]]
# Of a machine that said nothing.
NOTHING = (0, 0, 0.0, *[None] * 9)


class Read(NamedTuple):
    """Rows of statements.py by machine, and the machines that serve."""

    gpus: Readings
    hosts: Readings
    cards: Readings
    serving: frozenset[int]


def machines_of(team: Team) -> list[Instance]:
    rows = Instance.objects.filter(team=team, gone_at=None, state=InstanceState.RUNNING, gpu_count__gt=0)
    return list(rows.select_related("account").defer("account__credentials").order_by("pk"))


def rates_of(team: Team, *, now: datetime) -> Rates:
    """What one unit of each currency is in the team's, today."""
    today = now.astimezone(ZoneInfo(team.time_zone)).date()
    found = rates_into(team_id=team.pk, currency=team.currency, start=today, end=today + timedelta(days=1))
    return {one.currency: one.factor for one in found} | {team.currency: Decimal(1)}


def measured(machines: Sequence[Instance], rates: Rates, *, now: datetime) -> dict[int, Measured]:
    """Of each machine what the whole hours of the window say. Four queries."""
    until = HOUR.floor(now)
    ids = [machine.pk for machine in machines]
    given: dict[str, Any] = {"instance_ids": ids, "since": until - WINDOW, "until": until}
    serving = ServingLatest.objects.filter(instance__in=ids, sampled_at__gte=given["since"])
    read = Read(
        gpus=_read(GPUS, given),
        hosts=_read(HOSTS, given),
        cards=_read(CARDS, given),
        serving=frozenset(serving.values_list("instance_id", flat=True)),
    )
    return {one.pk: _measured(one, read, rates) for one in machines}


def _read(statement: str, given: dict[str, Any]) -> Readings:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return {row[0]: row[1:] for row in cursor.fetchall()}


def _measured(machine: Instance, read: Read, rates: Rates) -> Measured:
    span, running, coverage, newest, peak, p999, working, holding, mean, p50, p95, sm = read.gpus.get(
        machine.pk, NOTHING
    )
    ram, cpu, disk, network = read.hosts.get(machine.pk, (None,) * 4)
    memory, is_partitioned = read.cards.get(machine.pk, (None, False))
    return Measured(
        provider=machine.account.kind,
        region=machine.region,
        gpu_model=machine.gpu_model,
        gpus=machine.gpu_count or 0,
        market=Market(machine.market),
        tenancy=Tenancy(machine.tenancy),
        price_per_hour=_converted(machine.price_per_hour, machine.currency, rates),
        span_seconds=int(span),
        running_seconds=int(running or 0),
        coverage=float(coverage or 0),
        newest_at=newest and newest + HOUR.width,
        peak_memory_bytes=peak,
        p999_memory_bytes=p999,
        working_at_once=working or 0,
        holding_at_once=holding or 0,
        utilization_mean=mean,
        utilization_p50=p50,
        utilization_p95=p95,
        sm_activity_p95=sm,
        gpu_memory_bytes=memory or (machine.gpu_memory_mib and machine.gpu_memory_mib * MIB),
        vcpus=machine.vcpus,
        cpu_peak=cpu,
        ram_peak_bytes=ram,
        disk_used_bytes=disk,
        network_peak=network,
        serves=machine.pk in read.serving,
        is_partitioned=is_partitioned,
        loses_local_disk=_loses_disk(machine.account.kind),
    )


def _loses_disk(kind: str) -> bool:
    """An end at a provider that nobody knows here may lose anything."""
    adapter = adapters().get(kind)
    return adapter is None or adapter.semantics.terminate_loses_data


def candidates_of(team: Team, rates: Rates, *, now: datetime) -> list[Candidate]:
    """What can be rented now, the cheapest first. What has no price, no rate into the team's currency or no sure GPU model is left out."""
    rows = Offer.objects.filter(source__team=team, price_per_hour__gt=0, gpu_count__gt=0, gpu_model__in=list(NAMES))
    found = (_candidate(offer, rates, now) for offer in rows.exclude(available=False).select_related("source"))
    return few_of_each(offer for offer in found if offer is not None)


def few_of_each(offers: Iterable[Candidate]) -> list[Candidate]:
    kept: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for offer in sorted(offers, key=lambda one: (one.price_per_hour, one.id)):
        alike = kept[offer.provider, offer.market, offer.tenancy, offer.gpu_model, offer.gpus]
        if len(alike) < ALIKE:
            alike.append(offer)
    return sorted((one for alike in kept.values() for one in alike), key=lambda one: (one.price_per_hour, one.id))


def _candidate(offer: Offer, rates: Rates, now: datetime) -> Candidate | None:
    price = _converted(offer.price_per_hour, offer.currency, rates)
    memory = _memory(offer)
    if price is None or memory is None or not _is_fresh(offer, now):
        return None
    return Candidate(
        id=offer.pk,
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        market=Market(offer.market),
        tenancy=Tenancy(offer.tenancy),
        price_per_hour=price,
        gpu_model=offer.gpu_model,
        gpus=offer.gpu_count or 0,
        gpu_memory_bytes=memory,
        vcpus=offer.vcpus,
        ram_bytes=offer.ram_mib and offer.ram_mib * MIB,
        disk_bytes=offer.disk_gb and offer.disk_gb * GB,
        internet=_slower(offer.internet_down_mbps, offer.internet_up_mbps),
        priced_on=None if offer.source.kind == SourceKind.LIVE else (offer.priced_on or offer.seen_at.date()),
    )


def _is_fresh(offer: Offer, now: datetime) -> bool:
    if offer.source.kind == SourceKind.LIVE:
        return now - offer.seen_at <= LIVE_FOR
    return (now.date() - (offer.priced_on or offer.seen_at.date())) <= DATED_FOR


def _memory(offer: Offer) -> int | None:
    """Of one GPU, as its driver will show it: less than what is printed on it."""
    card = known_gpus().get(offer.gpu_model)
    told = [offer.gpu_memory_mib * MIB] if offer.gpu_memory_mib else []
    return min([*told, *([card.memory_bytes] if card else [])], default=None)


def _slower(*speeds: float | None) -> float | None:
    """Bytes a second."""
    told = [speed for speed in speeds if speed is not None]
    return min(told) * BYTES_PER_MEGABIT if told else None


def _converted(amount: Decimal | None, currency: str, rates: Rates) -> Decimal | None:
    """None for what has no rate: it is no more comparable than what has no price."""
    rate = rates.get(currency)
    return None if amount is None or rate is None else amount * rate
