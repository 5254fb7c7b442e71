"""What a machine's page says of the provider's own measurements, beside the agent's readings."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from fleet.formats import rate_text
from fleet.inventory.adapters import can
from fleet.inventory.failures import in_readers_language
from fleet.inventory.models import Instance
from fleet.inventory.offers.places import provider_label
from fleet.inventory.provider_word.models import ProviderReading, ProviderUsage
from fleet.inventory.provider_word.reading import USAGE
from fleet.panels import Context
from fleet.providers.base import Capability
from fleet.teams.access import TeamRequest


def usage_panel(_request: TeamRequest, instance: Instance) -> Context | None:
    """None where the provider neither measures nor ever told anything."""
    measures = can(instance.account, Capability.METRICS)
    newest = ProviderUsage.objects.filter(instance=instance).order_by("-slot").first()
    if newest is None and not measures:
        return None
    account = instance.account
    reading = ProviderReading.objects.filter(account=account, subject=USAGE.name, failures__gt=0).first()
    return {
        "provider": provider_label(account.kind),
        "usage": newest,
        "facts": list(facts_of(newest)) if newest else [],
        "period_seconds": USAGE.interval_of(account.kind) if measures else account.poll_interval_seconds,
        "error": in_readers_language(reading.error_detail) if reading else "",
    }


def facts_of(usage: ProviderUsage) -> Iterator[tuple[str, str]]:
    """(label, text); "" = the provider does not say."""
    yield _("GPUs busy"), per_gpu_text(usage.gpu_utilization_percent)
    yield _("GPU memory"), per_gpu_text(usage.gpu_memory_percent)
    yield _("Processor"), percent_text(usage.cpu_percent)
    yield _("Memory"), percent_text(usage.memory_percent)
    yield _("Network in"), moved(usage.network_received_bytes_per_s)
    yield _("Network out"), moved(usage.network_sent_bytes_per_s)
    yield _("Disk read"), moved(usage.disk_read_bytes_per_s)
    yield _("Disk written"), moved(usage.disk_written_bytes_per_s)


def per_gpu_text(values: list[float | None]) -> str:
    return ", ".join("?" if value is None else percent_text(value) for value in values)


def percent_text(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}%"


def moved(value: float | None) -> str:
    return "" if value is None else rate_text(value)
