"""What is said of acceptance tests: the checks, their figures, and the alert."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.formats import bytes_text, number_text, rate_text
from fleet.quality.acceptance.figures import Result, Source
from fleet.quality.models import AcceptanceVerdict

Words = Mapping[str, str | Promise]

CHECKS: Words = {
    "gpu_model": gettext_lazy("GPU model"),
    "gpu_count": gettext_lazy("GPUs"),
    "gpu_memory": gettext_lazy("memory of a GPU"),
    "pcie_width": gettext_lazy("PCI Express lanes"),
    "pcie_generation": gettext_lazy("PCI Express generation"),
    "host_to_device": gettext_lazy("host to GPU"),
    "matrix": gettext_lazy("matrix products"),
    "slowest_gpu": gettext_lazy("slowest GPU against the middle one"),
    "vcpus": gettext_lazy("vCPUs"),
    "cpu_delivered": gettext_lazy("cores that all vCPUs are worth"),
    "ram": gettext_lazy("memory"),
    "disk": gettext_lazy("disk"),
    "disk_read": gettext_lazy("disk, reading in order"),
    "disk_write": gettext_lazy("disk, writing in order"),
    "disk_read_iops": gettext_lazy("disk, reading 4 KiB anywhere"),
    "disk_write_iops": gettext_lazy("disk, writing 4 KiB anywhere"),
    "cpu_single": gettext_lazy("one core, fixed work"),
    "download": gettext_lazy("download from here"),
    "upload": gettext_lazy("upload to here"),
}
SOURCES: Words = {
    Source.PROVIDER: gettext_lazy("the provider's listing"),
    Source.CARD: gettext_lazy("the card's data sheet"),
    Source.LINK: gettext_lazy("what such a link can carry"),
    Source.EQUALS: gettext_lazy("its other cards"),
    Source.PEERS: gettext_lazy("your other machines of this kind"),
}
RESULTS: Words = {
    Result.OK: gettext_lazy("as it should be"),
    Result.SHORT: gettext_lazy("short"),
    Result.WRONG: gettext_lazy("not what was rented"),
    Result.UNKNOWN: gettext_lazy("nothing to hold it against"),
}
PARTS: Words = {
    "gpu": gettext_lazy("GPUs"),
    "torch": gettext_lazy("rates of the GPUs"),
    "cpu": gettext_lazy("processor"),
    "memory": gettext_lazy("memory"),
    "disk": gettext_lazy("disk"),
    "network": gettext_lazy("network"),
}
UNITS: Mapping[str, Callable[[float], str]] = {
    "bytes": bytes_text,
    "bytes_per_second": rate_text,
    "flops": lambda value: f"{number_text(value / 1e12)} TFLOP/s",
    "iops": lambda value: f"{value:,.0f} IOPS",
    "lanes": lambda value: f"x{value:.0f}",
    "generation": lambda value: f"{value:.0f}",
    "rounds": lambda value: f"{value:,.0f}/s",
}


def check_text(name: str) -> str:
    """A name of another release as it stands."""
    return str(CHECKS.get(name, name))


def figure_text(value: object, unit: str) -> str:
    """Empty for what is not known."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return UNITS.get(unit, _plain)(value)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else number_text(value)


def shortfall_text(check: Mapping[str, Any]) -> str:
    """One check that is not as it should be: "PCI Express lanes: x8 of x16"."""
    said = {
        "what": check_text(str(check["name"])),
        "measured": figure_text(check["measured"], check["unit"]),
        "promised": figure_text(check["promised"], check["unit"]),
    }
    if check["unit"] == "model":
        return _("%(what)s: %(measured)s instead of %(promised)s") % said
    return _("%(what)s: %(measured)s of %(promised)s") % said


def alert_words(values: Mapping[str, Any]) -> str:
    text = "; ".join(shortfall_text(check) for check in values["checks"])
    more = int(values.get("more") or 0)
    return f"{text}; " + ngettext("%(n)d more", "%(n)d more", more) % {"n": more} if more else text


def verdict_text(verdict: str) -> str:
    return str(AcceptanceVerdict(verdict).label) if verdict in AcceptanceVerdict.values else verdict
