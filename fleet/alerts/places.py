"""Where what an alert is about stands, and what it is, in words."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise

from fleet.inventory.models import Instance, ProviderAccount
from fleet.providers.registry import adapters


@dataclass(frozen=True, slots=True)
class Place:
    """The page of what an alert is about: `url_name` takes the team's slug and `pk`; `says` is the text of the link."""

    url_name: str
    pk: int
    says: str | Promise


# Of the rooms above: by what a subject "kind:pk" begins with, the page and its link.
_places: dict[str, tuple[str, str | Promise]] = {}


def register_place(kind: str, url_name: str, says: str | Promise) -> None:
    if kind in _places:
        raise ValueError(f"The place of {kind!r} is registered already")
    _places[kind] = (url_name, says)


def place_of(subject: str) -> Place | None:
    """None where no page is registered for it."""
    kind, _colon, pk = subject.partition(":")
    return Place(_places[kind][0], int(pk), _places[kind][1]) if kind in _places and pk.isdecimal() else None


def provider_name(account: ProviderAccount) -> str:
    adapter = adapters().get(account.kind)
    return str(adapter.label) if adapter and account.kind != "manual" else account.name


def machine_place(instance: Instance) -> str:
    """Whose it is and what it has, as far as that is known: "AWS us-east-1, 8 × A100"."""
    where = " ".join(part for part in (provider_name(instance.account), instance.region) if part)
    model = instance.gpu_model or instance.gpu_raw
    gpus = f"{instance.gpu_count} × {model}" if instance.gpu_count and model else ""
    return ", ".join(part for part in (where, gpus) if part)
