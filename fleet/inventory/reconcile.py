"""A complete listing against what we know: machines appear, change, go missing, come back, are gone. All of it in one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from fleet.inventory.listing import LISTED, Listing, fields_of, image_text, key_of, size
from fleet.inventory.missing import settle_account, sort_missing
from fleet.inventory.models import Image, Instance, Observation, ProviderAccount
from fleet.inventory.observe import OBSERVED, observation_of
from fleet.inventory.provider_word.keeping import keep_listed_usage
from fleet.inventory.words import DOUBTED, UNLISTED
from fleet.providers.base import Billing, InstanceState, ProviderInstance
from fleet.teams.audit import Actor, record

BATCH = 500
WRITTEN = (*LISTED, "state_since", "rule_version", "image", "gone_at", "missed_listings", "doubted_since")
POLLER = Actor.system("poll")


@dataclass
class Changes:
    """What a listing changed, for the audit log and for the caller."""

    found: list[Instance] = field(default_factory=list)
    changed: list[Instance] = field(default_factory=list)
    gone: list[Instance] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    # Fields that differ on some machine: an UPDATE of a thousand rows is as slow as it has columns.
    fields: set[str] = field(default_factory=set)

    def note(self, instance: Instance, before: dict[str, object]) -> None:
        differing = {name for name, value in snapshot(instance).items() if value != before[name]}
        if differing:
            self.changed.append(instance)
            self.fields |= differing


@transaction.atomic
def apply_listing(*, account: ProviderAccount, listing: Listing, rule_version: int, now: datetime) -> Changes | None:
    """Writes a listing. None, and nothing written: another poll took over meanwhile, or the account was paused or disconnected."""
    mine = ProviderAccount.objects.select_for_update().filter(
        pk=account.pk, poll_started_at=account.poll_started_at, disconnected_at=None
    )
    if not mine.exists():
        return None
    images = record_images(account=account, listing=listing, now=now)
    known = known_machines(account, listing.machines)
    changes = Changes()
    for machine in listing.machines:
        instance = known.get(key_of(machine))
        values = fields_of(machine, default_currency=account.currency)
        values |= {"rule_version": rule_version, "image": images.get(image_text("external_id", machine.image_id))}
        if instance is None:
            appear(changes, account, machine, values, now)
        elif not is_overtaken(instance, now):
            compare(changes, instance, values, now)
    listed = {key_of(machine) for machine in listing.machines}
    # What a launch named and no listing has shown yet is late, not missing.
    there = {key: row for key, row in known.items() if not (row.gone_at or row.is_unseen or is_overtaken(row, now))}
    absent = [row for key, row in there.items() if key not in listed]
    missing = sort_missing(account, absent, listed=len(listed), still_there=len(there) - len(absent))
    for instance in missing.expected:
        miss(changes, instance, now)
    for instance in missing.doubted:
        doubt(changes, instance, now)
    write(changes, account=account, known=[known[key] for key in listed if key in known], now=now)
    there = known | {(row.region, row.external_id): row for row in changes.found}
    keep_listed_usage(listing.machines, known=there, now=now)
    settle_account(account)
    return changes


def known_machines(account: ProviderAccount, machines: Iterable[ProviderInstance]) -> dict[tuple[str, str], Instance]:
    """By (region, external id): all that are there, and those of the gone ones that the listing names again."""
    named = [key_of(machine)[1] for machine in machines]
    # In one order, whoever locks several: else two wait for each other.
    rows = Instance.objects.select_for_update().filter(Q(gone_at=None) | Q(external_id__in=named), account=account)
    rows = rows.order_by("pk")
    return {(row.region, row.external_id): row for row in rows}


def appear(
    changes: Changes, account: ProviderAccount, machine: ProviderInstance, values: dict[str, object], now: datetime
) -> None:
    """A machine nobody registered: shown as unmanaged, and never touched."""
    region, external_id = key_of(machine)
    told = {InstanceState.RUNNING: machine.started_at, InstanceState.STOPPED: machine.stopped_at}
    instance = Instance(
        team_id=account.team_id,
        account=account,
        external_id=external_id,
        region=region,
        state_since=told.get(machine.state) or now,
        first_seen_at=now,
        last_seen_at=now,
        gone_at=now if machine.state == InstanceState.TERMINATED else None,
        **values,
    )
    changes.found.append(instance)
    changes.observations.append(observation_of(instance, now=now))


def compare(changes: Changes, instance: Instance, values: dict[str, object], now: datetime) -> None:
    """A machine that we know is listed: overwrite what the provider says of it, and note what differs from before."""
    before, observed, was_missing = snapshot(instance), seen_of(instance), instance.missed_listings > 0
    for name, value in values.items():
        setattr(instance, name, value)
    if instance.state != before["state"]:
        instance.state_since = now
    terminated = instance.state == InstanceState.TERMINATED
    if terminated and instance.gone_at is None:
        changes.gone.append(instance)
    instance.gone_at = (instance.gone_at or now) if terminated else None
    instance.missed_listings, instance.doubted_since = 0, None
    changes.note(instance, before)
    if was_missing or seen_of(instance) != observed:
        changes.observations.append(observation_of(instance, now=now, unchanged_until=instance.last_seen_at))


def is_overtaken(instance: Instance, now: datetime) -> bool:
    """Whether it was read by itself after the listing began, which then has nothing new to say of it."""
    return instance.probed_at is not None and instance.probed_at > now


def miss(changes: Changes, instance: Instance, now: datetime) -> None:
    """A complete listing did not name it. Once may be the provider's mistake; several times in a row, it is gone."""
    before = snapshot(instance)
    instance.missed_listings += 1
    gone = instance.missed_listings >= settings.LISTINGS_UNTIL_GONE
    if gone:
        instance.state, instance.billing = InstanceState.TERMINATED, Billing.NONE
        instance.state_reason, instance.state_since, instance.gone_at = UNLISTED, now, now
        changes.gone.append(instance)
    changes.note(instance, before)
    if gone or instance.missed_listings == 1:
        changes.observations.append(
            observation_of(instance, now=now, unchanged_until=instance.last_seen_at, listed=False)
        )


def doubt(changes: Changes, instance: Instance, now: datetime) -> None:
    """A list that nobody believes did not name it: it counts as there, and after a while nobody says what it is doing or costs."""
    before = snapshot(instance)
    instance.doubted_since = instance.doubted_since or now
    instance.missed_listings = min(instance.missed_listings + 1, settings.LISTINGS_UNTIL_GONE)
    unsure = instance.missed_listings >= settings.LISTINGS_UNTIL_GONE and instance.state_reason != DOUBTED
    if unsure:
        instance.state, instance.billing = InstanceState.UNKNOWN, Billing.UNKNOWN
        instance.state_reason, instance.state_since = DOUBTED, now
    changes.note(instance, before)
    if unsure or not before["missed_listings"]:
        changes.observations.append(
            observation_of(instance, now=now, unchanged_until=instance.last_seen_at, listed=False)
        )


def snapshot(instance: Instance) -> dict[str, object]:
    """What a listing may write, by field."""
    return {name: getattr(instance, "image_id" if name == "image" else name) for name in WRITTEN}


def seen_of(instance: Instance) -> list[object]:
    return [getattr(instance, name) for name in OBSERVED]


def write(changes: Changes, *, account: ProviderAccount, known: list[Instance], now: datetime) -> None:
    Instance.objects.bulk_create(changes.found, batch_size=BATCH)
    if changes.changed:
        Instance.objects.bulk_update(changes.changed, sorted(changes.fields), batch_size=BATCH)
    seen = Instance.objects.filter(pk__in=[instance.pk for instance in (*known, *changes.found)])
    seen.update(last_seen_at=now)
    seen.exclude(price_per_hour=None, storage_price_per_hour=None).update(priced_at=now)
    Observation.objects.bulk_create(changes.observations, batch_size=BATCH)
    if changes.found or changes.gone:
        new = {
            "found": [instance.external_id for instance in changes.found],
            "gone": [instance.external_id for instance in changes.gone],
        }
        record(actor=POLLER, team=account.team, action="account.listing", target=account, new=new)


def record_images(*, account: ProviderAccount, listing: Listing, now: datetime) -> dict[str, Image]:
    """The account's images by external id, its own and those that its machines use."""
    rows = {image.external_id: image for image in Image.objects.filter(account=account)}
    fresh: dict[str, Image] = {}
    for image in used_images(listing.machines, now) + own_images(listing, now):
        fresh[image.external_id] = image
    created = [row for key, row in fresh.items() if key not in rows]
    for image in created:
        image.account = account
    updated = [merge_image(rows[key], row) for key, row in fresh.items() if key in rows]
    Image.objects.bulk_create(created, batch_size=BATCH)
    Image.objects.bulk_update(
        updated, ["name", "region", "owned", "size_gb", "created_at", "last_seen_at", "gone_at"], batch_size=BATCH
    )
    # A machine may outlive its image, so a deleted one stays on record.
    if listing.images is not None:
        Image.objects.filter(account=account, gone_at=None).exclude(external_id__in=fresh).update(gone_at=now)
    return rows | {image.external_id: image for image in created}


def own_images(listing: Listing, now: datetime) -> list[Image]:
    return [
        Image(
            external_id=image_text("external_id", image.external_id),
            name=image_text("name", image.name or image.external_id),
            region=image_text("region", image.region),
            size_gb=size(image.size_gb),
            created_at=image.created_at,
            first_seen_at=now,
            last_seen_at=now,
        )
        for image in listing.images or ()
    ]


def used_images(machines: Iterable[ProviderInstance], now: datetime) -> list[Image]:
    return [
        Image(
            external_id=image_text("external_id", machine.image_id),
            name=image_text("name", machine.image_name or machine.image_id),
            region=image_text("region", machine.ref.region),
            owned=False,
            first_seen_at=now,
            last_seen_at=now,
        )
        for machine in machines
        if machine.image_id
    ]


def merge_image(row: Image, fresh: Image) -> Image:
    row.name, row.region, row.owned = fresh.name, fresh.region, fresh.owned
    row.created_at = fresh.created_at or row.created_at
    row.size_gb = row.size_gb if fresh.size_gb is None else fresh.size_gb
    row.last_seen_at, row.gone_at = fresh.last_seen_at, None
    return row
