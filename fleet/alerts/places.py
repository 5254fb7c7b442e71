"""Where what an alert is about stands, and what it is, in words."""

from __future__ import annotations

from fleet.inventory.models import Instance, ProviderAccount
from fleet.providers.registry import adapters


def provider_name(account: ProviderAccount) -> str:
    adapter = adapters().get(account.kind)
    return str(adapter.label) if adapter and account.kind != "manual" else account.name


def machine_place(instance: Instance) -> str:
    """Whose it is and what it has, as far as that is known: "AWS us-east-1, 8 × A100"."""
    where = " ".join(part for part in (provider_name(instance.account), instance.region) if part)
    model = instance.gpu_model or instance.gpu_raw
    gpus = f"{instance.gpu_count} × {model}" if instance.gpu_count and model else ""
    return ", ".join(part for part in (where, gpus) if part)
