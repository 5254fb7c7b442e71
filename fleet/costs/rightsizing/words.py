"""Sentences of right-sizing: what changes, what it costs or loses, why a machine is left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.costs.rightsizing.sizing.figures import Loses, Why
from fleet.formats import bytes_text, duration_text
from fleet.inventory.offers.places import provider_label
from fleet.inventory.words import MARKETS
from fleet.providers.base import Market

Told = Mapping[str, Any]
WHY: Mapping[Why, str | Promise] = {
    Why.OFF: gettext_lazy("off"),
    Why.GPU_UNKNOWN: gettext_lazy("its GPU model is not known for sure"),
    Why.PARTITIONED: gettext_lazy("its GPUs are partitioned"),
    Why.PRICE_UNKNOWN: gettext_lazy("its price is not known"),
    Why.COMMITTED: gettext_lazy("paid for until its term ends"),
    Why.NOT_MEASURED: gettext_lazy("no readings"),
    Why.TOO_NEW: gettext_lazy("measured for %(days)s days, 7 are needed"),
    Why.THIN: gettext_lazy("readings of %(percent)s%% of its time, 50%% are needed"),
    Why.STALE: gettext_lazy("silent for %(hours)s h"),
    Why.NEVER_WORKED: gettext_lazy("nothing worked there: stop it rather"),
    Why.NOTHING_CHEAPER: gettext_lazy("nothing cheaper is offered"),
    Why.OTHER_KIND: gettext_lazy("what is cheaper is another product"),
    Why.GPUS: gettext_lazy("%(gpus)s GPUs worked at once"),
    Why.MEMORY: gettext_lazy("%(percent)s%% memory, needs %(gib)s GB"),
    Why.LINKS: gettext_lazy("its GPUs may work together over NVLink"),
    Why.HOST: gettext_lazy("what is cheaper has too little around its GPUs"),
    Why.INTERRUPTS: gettext_lazy("answers requests; only spot is cheaper"),
    Why.SPEED_UNKNOWN: gettext_lazy("how fast the cheaper GPUs are is not known"),
    Why.SLOWER: gettext_lazy("the cheaper GPUs have %(percent)s%% of its speed"),
    Why.BUSY: gettext_lazy("%(percent)s%% busy"),
    Why.SAVES_NOTHING: gettext_lazy("a change would save less than 5%%"),
}
AROUND: Mapping[str, str | Promise] = {
    "ram": gettext_lazy("main memory"),
    "vcpus": gettext_lazy("vCPUs"),
    "disk": gettext_lazy("disk"),
    "network": gettext_lazy("internet speed"),
}


def why_words(why: str, told: Told) -> str:
    """In a few words, as they stand in brackets behind a machine's name. "" for a word of an older version."""
    if why not in set(Why):
        return ""
    if why == Why.MEMORY and (told.get("percent") is None or told.get("gib") is None):
        return _("needs more memory than the cheaper GPUs have")
    return str(WHY[Why(why)]) % dict(told)


def loss_words(loss: Told) -> str:
    say = LOSSES.get(Loses(loss["code"])) if loss["code"] in set(Loses) else None
    return say(loss) if say else ""


def losses_words(losses: list[Told]) -> str:
    return "; ".join(filter(None, (loss_words(loss) for loss in losses)))


def change_words(measured: Told, change: Told) -> str:
    """As "4 to 3 × A100 SXM 80 GB", or "1 × H100 SXM to 1 × A100 SXM 80 GB"."""
    told = {"before": measured["gpus"], "after": change["gpus"], "gpu": change["gpu_model"]}
    if change["gpu_model"] != measured["gpu_model"]:
        return _("%(before)s × %(old)s to %(after)s × %(gpu)s") % {**told, "old": measured["gpu_model"]}
    if change["gpus"] != measured["gpus"]:
        return _("%(before)s to %(after)s × %(gpu)s") % told
    return _("%(after)s × %(gpu)s as before") % told


def place_words(change: Told) -> str:
    """Who offers it, on which terms: "Lambda, gpu_1x_a100, on demand"."""
    market = str(MARKETS[Market(change["market"])]) if change["market"] != Market.UNKNOWN else ""
    parts = (provider_label(change["provider"]), change["instance_type"], change["region"], market)
    return ", ".join(part for part in parts if part)


def measured_words(measured: Told, *, fewer: bool) -> str:
    """What the machine was seen to need, in a line under its name."""
    parts = []
    if fewer:
        worked = {"n": measured["working_at_once"], "all": measured["gpus"]}
        parts.append(_("%(n)s of %(all)s GPUs worked at once") % worked)
    if measured.get("utilization_mean") is not None:
        parts.append(_("%(percent)s%% busy") % {"percent": round(100 * measured["utilization_mean"])})
    if measured.get("peak_memory_bytes") is not None and measured.get("gpu_memory_bytes"):
        share = round(100 * measured["peak_memory_bytes"] / measured["gpu_memory_bytes"])
        parts.append(_("peak %(percent)s%% memory") % {"percent": share})
    return ", ".join(parts)


def _new_machine(loss: Told) -> str:
    size, seconds = loss.get("bytes"), loss.get("seconds")
    if size and seconds:
        told = {"time": duration_text(max(seconds, 60)), "size": bytes_text(size)}
        return _("a new machine: about %(time)s to move %(size)s") % told
    if size:
        return _("a new machine: %(size)s to move") % {"size": bytes_text(size)}
    return _("a new machine: what it holds has to be moved")


def _not_told(loss: Told) -> str:
    names = ", ".join(str(AROUND[name]) for name in loss["what"] if name in AROUND)
    return _("not told by the offer: %(names)s") % {"names": names}


def _held(loss: Told) -> str:
    text = ngettext(
        "memory is held on %(n)s more GPU, where nothing works", "memory is held on %(n)s more GPUs, where nothing works",
        loss["gpus"],
    )  # fmt: skip
    return text % {"n": loss["gpus"]}


LOSSES: Mapping[Loses, Callable[[Told], str]] = {
    Loses.NEW_MACHINE: _new_machine,
    Loses.LOCAL_DISK: lambda _loss: _("ending the old one deletes its local disks"),
    Loses.SLOWER: lambda loss: _("a GPU has %(speed)s × the speed: runs take up to %(times)s × as long") % loss,
    Loses.INTERRUPTIBLE: lambda _loss: _("may be taken away at any time"),
    Loses.COMMITTED: lambda loss: _("charged for all %(hours)s hours of a month, until its term ends") % loss,
    Loses.OTHER_PROVIDER: lambda _loss: _("at another provider"),
    Loses.OTHER_REGION: lambda loss: _("in another region, %(region)s") % loss,
    Loses.HELD_MEMORY: _held,
    Loses.NO_FP8: lambda _loss: _("no FP8"),
    Loses.REQUESTS: lambda _loss: _("requests have to be led to the new one"),
    Loses.DATED: lambda loss: _("a price of %(day)s: ask before you move") % loss,
    Loses.NOT_TOLD: _not_told,
}
