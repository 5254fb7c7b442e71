"""The search for offers as a form: the page shows it, the API takes the same names, and the address is the search."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.inventory.offers.need import Need, Purpose
from fleet.inventory.offers.score import MOST_WEIGHT, Weights
from fleet.inventory.words import MARKETS, TENANCIES
from fleet.providers.base import Market, Tenancy
from fleet.teams.fields import LineField

PURPOSES = {
    Purpose.EXPERIMENT: _("trying things out"),
    Purpose.TRAINING: _("training"),
    Purpose.BENCHMARK: _("benchmarks"),
    Purpose.PRODUCTION: _("production"),
}
UNKNOWN_PASSES, UNKNOWN_FALLS = "keep", "drop"
SORTS = {
    "score": _("best fit"),
    "price": _("price of the machine"),
    "gpu_price": _("price of a GPU"),
    "memory": _("GPU memory"),
    "network": _("network"),
    "age": _("newest price"),
}
WEIGHTS = tuple(one.name for one in fields(Weights))
# How the page lays them out: a title, or "" for what is always open, and the fields below it.
GROUPS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    ("", ("gpu", "gpus", "total_memory_gib", "max_price", "currency")),
    (_("Where"), ("provider", "region", "market", "tenancy", "image")),
    (_("Machine"), ("gpu_memory_gib", "interconnect", "vcpus", "ram_gib", "disk_gb", "internet_mbps")),
    (_("Your work"), ("purpose", "dataset_gb", "nodes", "node_gbps")),
    (_("Weights"), tuple(f"w_{name}" for name in WEIGHTS)),
    ("", ("unknown", "sort")),
)
BIG = 2**31 - 1
ANY = ("", _("any"))


class CurrencyField(forms.CharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_length=3, max_length=3, required=False, **kwargs)

    def clean(self, value: Any) -> str:
        word: str = super().clean(value).upper()
        if word and not (word.isascii() and word.isalpha()):
            raise forms.ValidationError(_("Write three letters, as USD."))
        return word


def line(label: Any, length: int, *, known: str = "", hint: Any = "") -> LineField:
    """`known`: the id of a list of what could be typed."""
    widget = forms.TextInput(attrs={"list": known} if known else {})
    return LineField(label=label, max_length=length, required=False, widget=widget, help_text=hint)


def whole(label: Any, *, low: int = 1, high: int = BIG, hint: Any = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=low, max_value=high, required=False, help_text=hint)


def choice(label: Any, words: Any, *, hint: Any = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=[ANY, *words], required=False, help_text=hint)


def weight(label: Any, default: int) -> forms.IntegerField:
    field = forms.IntegerField(label=label, min_value=0, max_value=MOST_WEIGHT, required=False)
    field.widget.attrs["placeholder"] = str(default)
    return field


class SearchForm(forms.Form):
    gpu = line(_("GPU"), 60, known="gpu-models", hint=_("H100 SXM is one model, H100 is all of its forms"))
    gpus = whole(_("GPUs in a machine"), high=1024, hint=_("at least"))
    nodes = whole(_("Machines"), high=10_000, hint=_("joined by a network"))
    gpu_memory_gib = whole(_("Memory of a GPU"), high=100_000, hint=_("GiB, at least"))
    total_memory_gib = whole(_("Memory of all its GPUs"), high=1_000_000, hint=_("GiB, at least"))
    max_price = forms.DecimalField(
        label=_("Price an hour"), min_value=Decimal("0.0001"), max_digits=12, decimal_places=4, required=False,
        help_text=_("of the machine, at most; only offers in this currency are compared"),
    )  # fmt: skip
    currency = CurrencyField(label=_("Currency"))
    provider = line(_("Provider"), 60, known="provider-names")
    region = line(_("Region"), 80, hint=_("a part of its name"))
    market = choice(_("Market"), [(m.value, MARKETS[m]) for m in Market if m is not Market.UNKNOWN])
    tenancy = choice(_("Tenancy"), [(t.value, TENANCIES[t]) for t in Tenancy if t is not Tenancy.UNKNOWN])
    interconnect = choice(_("Between GPUs"), [("nvlink", "NVLink"), ("pcie", "PCIe")])
    vcpus = whole(_("vCPUs"), high=100_000, hint=_("at least"))
    ram_gib = whole(_("Main memory"), high=1_000_000, hint=_("GiB, at least"))
    disk_gb = whole(_("Disk"), hint=_("GB, at least"))
    internet_mbps = whole(_("Internet"), high=10**9, hint=_("Mbit/s in both directions, at least"))
    node_gbps = whole(_("Between machines"), high=10**6, hint=_("Gbit/s, at least"))
    image = line(_("Image"), 200, hint=_("part of the name of one that your account has there"))
    dataset_gb = whole(_("Dataset"), hint=_("GB; the disk is held against it"))
    purpose = choice(_("Purpose"), [(purpose.value, word) for purpose, word in PURPOSES.items()])
    unknown = forms.ChoiceField(
        label=_("Offers that do not say"),
        choices=[
            (UNKNOWN_PASSES, _("show them")),
            (UNKNOWN_FALLS, _("leave them out")),
        ],
        required=False,
        help_text=_("what you ask for is marked where it is not known"),
    )
    w_gpu = weight(_("GPU model and count"), Weights().gpu)
    w_network = weight(_("Network"), Weights().network)
    w_images = weight(_("Images and API"), Weights().images)
    w_support = weight(_("Support"), Weights().support)
    w_price = weight(_("Price"), Weights().price)
    w_health = weight(_("Health of machines"), Weights().health)
    sort = forms.ChoiceField(label=_("Sort by"), choices=list(SORTS.items()), required=False)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("max_price") is not None and not given.get("currency"):
            given["currency"] = "USD"
        return given

    def need(self) -> Need:
        """What the offers are held against. Only of a valid form."""
        given = self.cleaned_data
        names = {one.name for one in fields(Need)} - {"nodes", "purpose"}
        purpose = Purpose(given["purpose"]) if given["purpose"] else None
        return Need(nodes=given["nodes"] or 1, purpose=purpose, **{name: given[name] for name in names})

    def weights(self) -> Weights:
        typed = {name: self.cleaned_data[f"w_{name}"] for name in WEIGHTS}
        return Weights(**{name: value for name, value in typed.items() if value is not None})
