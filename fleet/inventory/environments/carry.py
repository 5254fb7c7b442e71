"""How an environment goes along: from a machine to the image that is saved of it, and from an image to the machine that is launched from it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import environment_of, image_sources, reported, versions_of
from fleet.inventory.environments.versions import as_data, collect
from fleet.inventory.listing import image_text, size
from fleet.inventory.models import EnvironmentReport, Image, Instance, ProviderAccount
from fleet.providers.base import ProviderImage

RUNBOOK = ("commands", "pitfalls", "notes")


def carry_environment(*, machine: Instance, image: ProviderImage, since: datetime) -> None:
    """Gives a saved image what was known of its machine when it was asked for, at `since`. Call it in the transaction of the proof.

    Nothing that somebody wrote of the image already is overwritten.
    """
    account = machine.account
    row = known_image(account, image, now=since)
    source = environment_behind(machine)
    report = newest_before(machine, since)
    data = as_data(collect([*([reported(report)] if report else []), *image_sources(source, None)]))
    defaults = {"team_id": account.team_id, "name": row.name}
    environment, _new = Environment.objects.select_for_update(of=("self",)).get_or_create(image=row, defaults=defaults)
    if data:
        environment.carried = data
        environment.carried_at = report.reported_at if report else since
        environment.carried_from = machine.name
    for name in RUNBOOK:
        setattr(environment, name, getattr(environment, name) or (getattr(source, name) if source else ""))
    environment.save()


def known_image(account: ProviderAccount, image: ProviderImage, *, now: datetime) -> Image:
    """Its row. The next listing will have it; a poll that is under way holds the account's lock, and so does this."""
    ProviderAccount.objects.select_for_update(no_key=True).get(pk=account.pk)
    seen = {
        "name": image_text("name", image.name or image.external_id),
        "region": image_text("region", image.region),
        "size_gb": size(image.size_gb),
        "created_at": image.created_at,
        "first_seen_at": now,
        "last_seen_at": now,
    }
    external_id = image_text("external_id", image.external_id)
    row, _new = Image.objects.get_or_create(account=account, external_id=external_id, defaults=seen)
    return row


def environment_behind(machine: Instance) -> Environment | None:
    """Of the image that the machine runs: what agents do not read stands there."""
    return Environment.objects.filter(image=machine.image_id).first() if machine.image_id else None


def newest_before(machine: Instance, moment: datetime) -> EnvironmentReport | None:
    """What came later may not be in the image."""
    rows = EnvironmentReport.objects.filter(instance=machine, reported_at__lte=moment).select_related("instance")
    return rows.order_by("-reported_at", "-pk").first()


def carried_along(account: ProviderAccount, image_id: str) -> dict[str, Any] | None:
    """What a launch from an image of the account, by its provider's id, takes along; JSON-ready. None: nothing is known."""
    image = Image.objects.filter(account=account, external_id=image_id).select_related("account").first()
    if image is None:
        return None
    data = as_data(versions_of(environment_of(image)))
    return {"image": image.pk, "name": image.name, "versions": data} if data else None
