"""What rules and their thresholds are called on pages and in messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

Text = str | Promise


@dataclass(frozen=True, slots=True)
class RuleWords:
    name: Text
    says: Text


RULE_WORDS: Mapping[str, RuleWords] = {
    "agent_silent": RuleWords(
        _("No report"),
        _("A machine that should report says nothing. Its provider is asked too; when most of an account goes quiet, that is one alert."),
    ),
    "driver_hung": RuleWords(_("Driver does not answer"), _("The agent speaks and NVML hangs, fails, or does not fit its driver.")),
    "poll_failing": RuleWords(_("Account cannot be read"), _("Listings of a provider account fail or are late.")),
    "gpu_lost": RuleWords(_("GPU lost"), _("The driver names a GPU and cannot read it.")),
    "gpu_count": RuleWords(_("GPUs missing"), _("The machine has fewer GPUs than the provider lists.")),
    "xid": RuleWords(_("XID"), _("The driver reported an error of a GPU. How bad it is depends on its number.")),
    "ecc": RuleWords(_("Memory errors"), _("Errors that ECC could not correct, or memory rows that wait to be replaced.")),
    "thermal": RuleWords(_("Too hot"), _("A GPU slows down for heat, or is as hot as that.")),
    "power": RuleWords(_("Held back by power"), _("A power brake, or a power limit below that of the same cards elsewhere in the fleet.")),
    "gpu_memory": RuleWords(_("GPU memory nearly full"), _("The next allocation may fail.")),
    "host_memory": RuleWords(_("Memory nearly full"), _("The system may kill a process.")),
    "disk": RuleWords(_("Disk nearly full"), _("It is nearly full, or will be soon if it fills as in the last hours.")),
    "stalled": RuleWords(_("Stalled"), _("A GPU says that it is busy and draws about what it draws at rest.")),
    "starved": RuleWords(_("Starved"), _("A GPU waits for data, with the evidence of its machine's disks.")),
    "agent_outdated": RuleWords(_("Agent outdated"), _("This dashboard has a newer agent.")),
    "clock_skew": RuleWords(_("Clock wrong"), _("The machine's clock differs from the dashboard's. Its readings are corrected, its logs are not.")),
    "agent_backlog": RuleWords(_("Readings wait"), _("Readings wait on the machine and do not arrive.")),
    "price_changed": RuleWords(_("Price changed"), _("A machine costs something else than at the listing before.")),
    "unmanaged": RuleWords(_("Unregistered machines"), _("An account lists machines that nobody registered.")),
    "lease_ending": RuleWords(_("Lease ends"), _("A lease comes to its end.")),
    "own_trouble": RuleWords(_("Rackrent itself"), _("Beat, worker, ingest, rollups or a rule do not work as they should.")),
}  # fmt: skip

# By rule and name where one name means different things.
THRESHOLD_WORDS: Mapping[tuple[str, str], Text] = {
    ("agent_silent", "seconds"): _("silent for more than"),
    ("poll_failing", "failures"): _("failed listings in a row"),
    ("xid", "quiet_minutes"): _("over when there was no other for"),
    ("ecc", "uncorrected"): _("uncorrected errors since the last reset"),
    ("thermal", "celsius"): _("hotter than"),
    ("power", "percent"): _("limit below this share of its like"),
    ("gpu_memory", "percent"): _("fuller than"),
    ("host_memory", "percent"): _("fuller than"),
    ("disk", "percent"): _("fuller than"),
    ("disk", "hours"): _("or full within"),
    ("clock_skew", "seconds"): _("off by more than"),
    ("agent_backlog", "minutes"): _("waiting for more than"),
    ("price_changed", "percent"): _("changed by more than"),
    ("price_changed", "hours"): _("told for"),
    ("lease_ending", "hours"): _("ends within"),
    ("lease_ending", "urgent_hours"): _("urgent within"),
}
UNIT_WORDS: Mapping[str, Text] = {
    "percent": "%",
    "celsius": "°C",
    "seconds": pgettext_lazy("unit", "s"),
    "minutes": pgettext_lazy("unit", "min"),
    "hours": pgettext_lazy("unit", "h"),
    "count": "",
}


def rule_words(kind: str) -> RuleWords:
    """A kind that a higher slice raises by itself, or that an earlier release knew, is called by its own name."""
    return RULE_WORDS.get(kind) or RuleWords(kind.replace("_", " "), "")


def threshold_words(kind: str, name: str) -> Text:
    return THRESHOLD_WORDS[kind, name]
