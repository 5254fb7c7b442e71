"""How offers read: why one ranks where it does, what it lacks, and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.formats import money_text, number_text
from fleet.inventory.offers.need import Purpose
from fleet.inventory.offers.score import UNKNOWN_COUNTS_AS, Part
from fleet.inventory.offers.warnings import Oversight

Words = Mapping[str, str | Promise]

PARTS: Words = {
    "gpu": _("GPU model and count"),
    "network": _("Network"),
    "images": _("Images and API"),
    "support": _("Support"),
    "price": _("Price"),
    "health": _("Health of machines"),
}
REASONS: Words = {
    "not_asked": _("nothing was asked about GPUs: no weight"),
    "unknown": _("not told: counts as the middle"),
    "gpu_model": _("%(model)s, as asked"),
    "gpu_count": _("%(asked)s of its %(have)s GPUs are asked for"),
    "gpu_memory": _("%(asked)s GiB of its %(have)s GiB of GPU memory are asked for"),
    "node_network": _("%(speed)s Gbit/s between machines"),
    "internet": _("%(speed)s Mbit/s to the internet in its slower direction"),
    "no_adapter": _("no adapter: it can be seen and stopped at the provider only"),
    "creates_images": _("its adapter rents and saves images"),
    "creates_image": _("its adapter rents, and your account has the image there"),
    "creates_bare": _("its adapter rents, and saves no images"),
    "watches_images": _("its adapter saves images and cannot rent"),
    "watches_image": _("your account has the image there; its adapter cannot rent"),
    "watches_bare": _("its adapter neither rents nor saves images"),
    "not_rated": _("nobody of the team rated it: no weight"),
    "rated": _("%(stars)s of 5 by your team"),
    "not_known": _("too few GPU-days of your machines there: no weight"),
    "fared": _("%(stars)s of 5 by the faults of your machines there"),
    "price": _("%(own)s for a GPU and hour; the cheapest that fits costs %(cheapest)s"),
}
TOO_LITTLE: Words = {
    "vcpus": _("%(have)s vCPUs: under %(least)s the GPU waits for its data"),
    "ram": _("%(have)s GiB of main memory: loading a model takes %(least)s"),
    "ram_large_data": _("%(have)s GiB of main memory: a dataset of this size wants %(least)s"),
    "disk_kind": _("its disk is %(kind)s, no SSD: reading data and checkpoints is slow"),
    "system_disk": _("%(have)s GB of disk: system, drivers and one environment fill %(least)s"),
    "data_disk": _("%(have)s GB of disk for %(dataset)s GB of data: unpacked and with checkpoints it takes %(least)s"),
    "data_disk_tight": _(
        "%(have)s GB of disk for %(dataset)s GB of data: it fits, %(least)s leave room for checkpoints"
    ),
    "node_network": _("%(have)s Gbit/s between machines: several work together from %(least)s on"),
    "internet": _("%(have)s Mbit/s to the internet: under %(least)s fetching a model takes hours"),
    "tenancy": _("the host is shared: others change %(purpose)s"),
}
UNTOLD: Words = {
    "vcpus": _("vCPUs are not told"),
    "ram": _("main memory is not told"),
    "ram_large_data": _("main memory is not told, and the dataset is large"),
    "system_disk": _("size or kind of its disk is not told"),
    "data_disk": _("whether the dataset fits on its disk is not told"),
    "node_network": _("the network between machines is not told"),
    "internet": _("the connection to the internet is not told in both directions"),
    "tenancy": _("whether others share the host is not told"),
}
HURT: Words = {
    Purpose.BENCHMARK: _("what a benchmark measures"),
    Purpose.PRODUCTION: _("how fast production answers"),
}


def part_name(part: Part) -> str:
    return str(PARTS[part.name])


def reason_of(part: Part) -> str:
    """Why the part has its value."""
    if part.value is None and part.code == "unknown":
        return str(REASONS["unknown"])
    told: dict[str, Any] = dict(part.told)
    if part.code == "price":
        told |= {name: money_text(told[name], told["currency"]) for name in ("own", "cheapest")}
    return str(REASONS[part.code]) % _shown(told)


def oversight_text(found: Oversight) -> str:
    if not found.known:
        return str(UNTOLD[found.code])
    told: dict[str, Any] = dict(found.told)
    if found.code == "tenancy":
        told["purpose"] = str(HURT[told["purpose"]])
    return str(TOO_LITTLE[found.code]) % _shown(told)


def score_sentence(parts: tuple[Part, ...]) -> str:
    """One line: what speaks for the place most, and what against it. Half the weight's points are neither."""
    known = sorted(
        ((part.value, part) for part in parts if part.weight and part.value is not None), key=lambda pair: pair[0]
    )
    said = []
    if known and known[-1][0] > UNKNOWN_COUNTS_AS:
        said.append(gettext("For it: %(reason)s.") % {"reason": reason_of(known[-1][1])})
    if known and known[0][0] < UNKNOWN_COUNTS_AS:
        said.append(gettext("Against it: %(reason)s.") % {"reason": reason_of(known[0][1])})
    return " ".join(said) or gettext("Nothing told of it speaks for it or against it.")


def _shown(told: Mapping[str, Any]) -> dict[str, str]:
    return {name: _figure(value) for name, value in told.items()}


def _figure(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if value == int(value) else number_text(value)
