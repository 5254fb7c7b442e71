"""What rules and their thresholds are called on pages and in messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

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
    "not_as_rented": RuleWords(_("Not what was rented"), _("GPUs of another model, with less memory, or more of them than the provider lists.")),
    "xid": RuleWords(_("XID"), _("The driver reported an error of a GPU. How bad it is depends on its number.")),
    "ecc": RuleWords(_("Memory errors"), _("Errors that ECC could not correct, or memory rows that wait to be replaced.")),
    "thermal": RuleWords(_("Too hot"), _("A GPU is hot, or its clocks are lowered for heat.")),
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
    "list_lost": RuleWords(_("List suddenly empty"), _("The list of an account leaves out most of its machines at once.")),
    "lease_ending": RuleWords(_("Lease ends"), _("A lease comes to its end.")),
    "provider_notice": RuleWords(_("Notice from the provider"), _("A provider takes a machine back, plans maintenance, retires its host or wants to be paid.")),
    "stop_unconfirmed": RuleWords(_("Stop not confirmed"), _("A machine was told to stop or to end, and no reading of its provider shows it.")),
    "operation_unconfirmed": RuleWords(_("Act not confirmed"), _("A launch, start, restart or image was asked for, and no reading of the provider shows it.")),
    "operation_failed": RuleWords(_("Act refused"), _("A provider refused what was asked for.")),
    "own_trouble": RuleWords(_("Rackrent itself"), _("Beat, worker, ingest, rollups or a rule do not work as they should.")),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ThresholdWords:
    """`label`: of its form field. `says`: what follows "fires when", with the value in it as %(value)s."""

    label: Text
    says: Text


# By rule and name: one name means different things in different rules.
THRESHOLD_WORDS: Mapping[tuple[str, str], ThresholdWords] = {
    ("agent_silent", "seconds"): ThresholdWords(
        _("Silent for, in seconds"), _("nothing was heard of a machine for %(value)s s")
    ),
    ("poll_failing", "failures"): ThresholdWords(
        _("Failed listings in a row"),
        ngettext_lazy("%(value)d listing failed", "%(value)d listings in a row failed", "value"),
    ),
    ("xid", "quiet_minutes"): ThresholdWords(
        _("Over after so many minutes without another"), _("an XID was reported in the last %(value)s min")
    ),
    ("ecc", "uncorrected"): ThresholdWords(
        _("Uncorrected errors since the last reset"),
        _("%(value)s or more memory errors could not be corrected since the last reset"),
    ),
    ("thermal", "celsius"): ThresholdWords(
        _("Temperature, in °C"), _("a GPU is at %(value)s °C or above, or slows down for heat")
    ),
    ("power", "percent"): ThresholdWords(
        _("Share of what its like may draw, in percent"),
        _("a GPU may draw less than %(value)s %% of what its like may draw elsewhere"),
    ),
    ("gpu_memory", "percent"): ThresholdWords(
        _("Memory in use, in percent"), _("%(value)s %% or more of a GPU's memory is in use")
    ),
    ("host_memory", "percent"): ThresholdWords(
        _("Memory in use, in percent"), _("%(value)s %% or more of the machine's memory is in use")
    ),
    ("disk", "percent"): ThresholdWords(_("Disk in use, in percent"), _("%(value)s %% or more of a disk is in use")),
    ("disk", "hours"): ThresholdWords(_("Or full within, in hours"), _("or it will be full within %(value)s h")),
    ("clock_skew", "seconds"): ThresholdWords(
        _("Difference, in seconds"), _("a machine's clock is off by %(value)s s or more")
    ),
    ("agent_backlog", "minutes"): ThresholdWords(
        _("Waiting for, in minutes"), _("readings have waited on a machine for more than %(value)s min")
    ),
    ("price_changed", "percent"): ThresholdWords(
        _("Change, in percent"), _("a machine's price changed by %(value)s %% or more")
    ),
    ("price_changed", "hours"): ThresholdWords(
        _("Told for so many hours"), _("and the change is at most %(value)s h old")
    ),
    ("lease_ending", "hours"): ThresholdWords(_("Ends within, in hours"), _("a lease ends within %(value)s h")),
    ("lease_ending", "urgent_hours"): ThresholdWords(
        _("Urgent within, in hours"), _("and it is urgent within %(value)s h")
    ),
    ("stop_unconfirmed", "minutes"): ThresholdWords(
        _("Not shown after, in minutes"),
        _("a machine was told to stop %(value)s min ago and is not shown to have stopped"),
    ),
    ("operation_unconfirmed", "minutes"): ThresholdWords(
        _("Not shown after, in minutes"), _("an act was asked for %(value)s min ago and does not show")
    ),
    ("operation_failed", "hours"): ThresholdWords(
        _("Told for so many hours"), _("a provider refused an act, at most %(value)s h ago")
    ),
}


def rule_words(kind: str) -> RuleWords:
    """A kind that a higher slice raises by itself, or that an earlier release knew, is called by its own name."""
    return RULE_WORDS.get(kind) or RuleWords(kind.replace("_", " "), "")


def threshold_words(kind: str, name: str) -> ThresholdWords:
    return THRESHOLD_WORDS[kind, name]
