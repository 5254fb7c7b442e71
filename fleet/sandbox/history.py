"""Giving the sandbox its past: what the provider showed before the birth, what GPUs did meanwhile, and what people had set.

Written once, with the account, as the pollers and the roller would have written it. What it cost is in none of it: the ledger and the
sums are made from these rows like from any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import transaction

from fleet.costs.book.build import look_at_everything
from fleet.costs.budgets.manage import BudgetWords, add_budget
from fleet.costs.rates.rates import set_rate
from fleet.costs.rates.sheet import Rate
from fleet.inventory.listing import PRICE_STEP, fields_of
from fleet.inventory.models import GPU, Instance, Observation, ProviderAccount
from fleet.providers.sandbox import Sandbox
from fleet.providers.sandbox_facts import CHARGED, STATES, instance_of
from fleet.sandbox.cast import ENDED_DAYS, IMAGES, Member, gpu_patterns, seed_of
from fleet.sandbox.http_api import instance_json
from fleet.sandbox.past import KNOWN_SECONDS, Turn, currency_of, former_members, storage_price_of, turns_of
from fleet.sandbox.readings import Machine
from fleet.sandbox.rentals import CHARGED_FOR, rental_of, runs_of
from fleet.sandbox.rhythm import spent_of
from fleet.sandbox.schedule import HISTORY_SECONDS, TIERS
from fleet.states import GpuState
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project
from fleet.telemetry.rollups.backfill import GpuHour, write_past_hours
from fleet.telemetry.rollups.columns import HOUR

# A poll after the change, and the one before it.
SEEN_AFTER, SEEN_BEFORE = timedelta(seconds=20), timedelta(seconds=10)
# As many as the agents would have sent: the hour in which their own history begins is then not replaced by a part of it.
SAMPLES_PER_HOUR = round(HOUR.seconds / TIERS[0][0])
TEAM_BUDGET, ATLAS_BUDGET = Decimal(110_000), Decimal(40_000)
YUAN_IN_DOLLARS = Decimal("0.1404")


@dataclass(frozen=True, slots=True)
class Former:
    """A machine with a past, as it was written."""

    member: Member
    instance: Instance
    turns: list[Turn]
    gpus: list[GPU]


@transaction.atomic
def write_past(*, actor: Actor, account: ProviderAccount, born_at: float, now: datetime) -> int:
    """For an account that is new, before its first listing: the log counts in the order in which it was written. Returns the machines."""
    former = _write_machines(account, born_at)
    Observation.objects.bulk_create(row for one in former for row in observations_of(one, born_at))
    since = HOUR.floor(_moment(born_at - KNOWN_SECONDS))
    gpus = [gpu.pk for one in former for gpu in one.gpus]
    write_past_hours(hours_of(former, born_at, now), gpus=gpus, since=since, now=now)
    _set_money(actor, account, now)
    new = {"machines": len(former), "since": since.isoformat()}
    record(actor=actor, team=account.team, action="sandbox.past", target=account, new=new)
    look_at_everything()
    return len(former)


def _write_machines(account: ProviderAccount, born_at: float) -> list[Former]:
    projects = {project.slug: project for project in Project.objects.filter(team=account.team)}
    members = former_members()
    turns = [turns_of(member, born_at) for member in members]
    instances = Instance.objects.bulk_create(
        _instance(account, member, projects[member.project], own, born_at)
        for member, own in zip(members, turns, strict=True)
    )
    found = [
        Former(member, instance, own, _gpus(member, instance, born_at))
        for member, instance, own in zip(members, instances, turns, strict=True)
    ]
    GPU.objects.bulk_create(gpu for one in found for gpu in one.gpus)
    return found


def _instance(
    account: ProviderAccount, member: Member, project: Project, turns: list[Turn], born_at: float
) -> Instance:
    """As the listing of the birth shows it, or did when it was there last, and registered as its labels say."""
    rental = rental_of(member, born_at)
    values = fields_of(instance_of(instance_json(rental, IMAGES[rental.image])), default_currency=account.currency)
    values |= {
        "price_per_hour": turns[-1].price_per_hour.quantize(PRICE_STEP),
        "storage_price_per_hour": storage_price_of(member),
        "currency": currency_of(member),
        "rule_version": Sandbox.rule_version,
    }
    last = _moment(turns[-1].at)
    seen_last = last if member.id in ENDED_DAYS else _moment(born_at)
    return Instance(
        team=account.team,
        account=account,
        external_id=member.id,
        region=member.region,
        state_since=_moment(rental.stopped_at or rental.started_at or born_at),
        first_seen_at=_seen_at(turns[0], born_at),
        last_seen_at=seen_last,
        priced_at=seen_last,
        gone_at=last if member.id in ENDED_DAYS else None,
        managed=True,
        project=project,
        labels={"owner": member.owner},
        **values,
    )


def _gpus(member: Member, instance: Instance, born_at: float) -> list[GPU]:
    """As its agent names them, so that they are the same when it reports."""
    machine = Machine.of(rental_of(member, born_at), born_at=born_at)
    return [
        GPU(
            instance=instance,
            first_seen_at=instance.first_seen_at,
            removed_at=instance.gone_at,
            **{name: row[name] for name in ("uuid", "index", "name", "memory_total_bytes", "pci_bus_id")},
        )
        for row in machine.inventory()
    ]


def observations_of(one: Former, born_at: float) -> Iterator[Observation]:
    for number, turn in enumerate(one.turns):
        yield Observation(
            instance=one.instance,
            seen_at=_seen_at(turn, born_at),
            unchanged_until=_moment(turn.at) - SEEN_BEFORE if number else None,
            raw_state=turn.status,
            state=STATES[turn.status],
            billing=CHARGED[CHARGED_FOR[turn.status]],
            market=one.instance.market,
            price_per_hour=turn.price_per_hour,
            storage_price_per_hour=one.instance.storage_price_per_hour,
            currency=one.instance.currency,
            provider_created_at=one.instance.provider_created_at,
            provider_started_at=_moment(turn.started_at),
            provider_stopped_at=None if turn.stopped_at is None else _moment(turn.stopped_at),
            rule_version=Sandbox.rule_version,
        )


def hours_of(former: Iterable[Former], born_at: float, now: datetime) -> Iterator[GpuHour]:
    """Up to where the agents' own history begins, and never beyond the birth."""
    until = min(now.timestamp() - HISTORY_SECONDS, born_at)
    for one in former:
        runs = [(start, end or born_at) for start, end in runs_of(one.member, born_at)]
        began, ended = runs[0][0], one.instance.gone_at.timestamp() if one.instance.gone_at else born_at
        at = max(began, born_at - KNOWN_SECONDS) // HOUR.seconds * HOUR.seconds
        while at < min(until, ended):
            past_end = at + HOUR.seconds
            on = sum(max(0.0, min(end, past_end) - max(start, at)) for start, end in runs)
            rented = max(0.0, min(ended, past_end) - max(began, at))
            yield from _hour(one, at, on=on, off=max(0.0, rented - on), born_at=born_at)
            at = past_end


def _hour(one: Former, at: float, *, on: float, off: float, born_at: float) -> Iterator[GpuHour]:
    """`on` and `off`: seconds; what is left of the hour, the machine was not rented."""
    for index, (gpu, pattern) in enumerate(zip(one.gpus, gpu_patterns(one.member), strict=True)):
        spent = spent_of(pattern, at, seed_of(one.member.id, index), born_at=born_at)
        seconds = {state: share * on for state, share in spent.shares.items()}
        seconds |= {GpuState.STOPPED: off, GpuState.UNKNOWN: max(0.0, HOUR.seconds - on - off)}
        yield GpuHour(
            gpu_id=gpu.pk,
            bucket_at=_moment(at),
            samples=round(SAMPLES_PER_HOUR * on / HOUR.seconds),
            coverage=on / HOUR.seconds,
            seconds=seconds,
            utilization_percent=spent.utilization_percent if on else None,
        )


def _set_money(actor: Actor, account: ProviderAccount, now: datetime) -> None:
    """What a team sets before money says much: a rate for its other currency, and what it means to spend."""
    team = account.team
    day = (now - timedelta(seconds=KNOWN_SECONDS, days=20)).date()
    rate = Rate("CNY", "USD", day, YUAN_IN_DOLLARS, "made up for the sandbox")
    set_rate(actor=actor, team=team, rate=rate, now=now)
    atlas = Project.objects.get(team=team, slug="atlas-7b")
    add_budget(actor=actor, team=team, words=BudgetWords(amount=TEAM_BUDGET, currency="USD"), now=now)
    add_budget(actor=actor, team=team, words=BudgetWords(amount=ATLAS_BUDGET, currency="USD", project=atlas), now=now)


def _seen_at(turn: Turn, born_at: float) -> datetime:
    return _moment(max(turn.at, born_at - KNOWN_SECONDS)) + SEEN_AFTER


def _moment(at: float) -> datetime:
    """Of whole seconds, as the provider tells times."""
    return datetime.fromtimestamp(int(at), UTC)
