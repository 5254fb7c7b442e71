"""From an account of ours to the adapter that speaks for it."""

from __future__ import annotations

from fleet.inventory.credentials import open_sealed
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Capability, Provider
from fleet.providers.errors import Invalid
from fleet.providers.registry import adapters


def adapter_class(kind: str) -> type[Provider]:
    """Raises Invalid for a kind whose adapter this installation has not."""
    try:
        return adapters()[kind]
    except KeyError:
        raise Invalid(f"This installation has no adapter for {kind!r}.") from None


def secrets_of(account: ProviderAccount) -> dict[str, str]:
    return open_sealed(account.credentials)


def open_adapter(account: ProviderAccount) -> Provider:
    """The account's adapter with every declared field filled. Raises Invalid, InvalidOption or CredentialError."""
    adapter = adapter_class(account.kind)
    given = {**account.options, **secrets_of(account)}
    return adapter({field.name: str(given.get(field.name, field.default)) for field in adapter.fields})


def can(account: ProviderAccount, capability: Capability) -> bool:
    kinds = adapters()
    return account.kind in kinds and capability in kinds[account.kind].capabilities
