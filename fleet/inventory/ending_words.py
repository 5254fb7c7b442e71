"""What stopping means at a provider, in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.inventory.failures import in_readers_language
from fleet.providers.base import Ending, Fate

COLUMNS = {
    "gpus": _("GPUs"),
    "disks_billing": _("Disks, money"),
    "volumes": _("Volumes"),
    "local_disk": _("Local disk"),
    "return_": _("Getting it back"),
}
Cell = tuple[str, str, str, str]


def ending_rows(endings: tuple[Ending, ...]) -> list[tuple[str, str, list[Cell]]]:
    """(event, note, [(column, sign, word, note), …]) for each way to end or pause a machine."""
    return [(gettext(ending.event), in_readers_language(ending.note), cells(ending)) for ending in endings]


def cells(ending: Ending) -> list[Cell]:
    return [cell(str(title), getattr(ending, name)) for name, title in COLUMNS.items()]


def cell(title: str, fate: Fate) -> Cell:
    return title, fate.sign.value, gettext(fate.word), in_readers_language(fate.note)
