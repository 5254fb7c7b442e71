"""What a search leaves and in which order: every filter, silence that passes or falls, currencies apart, other teams unseen."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.inventory.models import Image
from fleet.inventory.offers.models import OfferSource, SourceKind
from fleet.inventory.offers.models_asked import models_asked
from fleet.inventory.offers.ratings import rate_support
from fleet.inventory.offers.search_form import SearchForm
from fleet.providers.gpus import canonical
from fleet.teams.audit import Actor
from planner.catalogue.gpus import MIB, gpus

KNOWN = ["H100", "H100 SXM", "H100 PCIe", "A100 SXM 80 GB", "A100-80GB", "A100 SXM 40 GB", "L4", "L40S"]


@pytest.mark.parametrize(
    ("asked", "models"),
    [
        ("H100 SXM", ["H100 SXM"]),
        ("NVIDIA H100 80GB HBM3", ["H100 SXM"]),
        ("h100", ["H100", "H100 PCIe", "H100 SXM"]),
        ("A100 80GB", ["A100 SXM 80 GB", "A100-80GB"]),
        ("L4", ["L4"]),
        ("Z9000", []),
    ],
)
def test_a_name_of_ours_is_one_model_and_looser_words_are_all_that_have_them(asked, models):
    assert models_asked(asked, KNOWN) == models


@pytest.mark.parametrize(
    ("asked", "fits", "too_little"),
    [
        ({"gpu": "H100"}, {"gpu_model": "H100 SXM"}, {"gpu_model": "A40"}),
        ({"gpus": 4}, {"gpu_count": 4}, {"gpu_count": 3}),
        ({"gpu_memory_gib": 80}, {"gpu_memory_mib": 81_559}, {"gpu_memory_mib": 46_068}),
        ({"total_memory_gib": 160}, {"gpu_count": 2}, {"gpu_count": 1}),
        ({"max_price": 2}, {"price": "2"}, {"price": "2.01"}),
        ({"region": "EU"}, {"region": "eu-north1"}, {"region": "us-east1"}),
        ({"market": "spot"}, {"market": "spot"}, {"market": "on_demand"}),
        ({"tenancy": "dedicated_host"}, {"tenancy": "dedicated_host"}, {"tenancy": "community_host"}),
        ({"interconnect": "nvlink"}, {"gpu_interconnect": "nvlink"}, {"gpu_interconnect": "pcie"}),
        ({"vcpus": 8}, {"vcpus": 8}, {"vcpus": 7}),
        ({"ram_gib": 64}, {"ram_mib": 65_536}, {"ram_mib": 32_768}),
        ({"disk_gb": 500}, {"disk_gb": 500}, {"disk_gb": 499}),
        ({"internet_mbps": 100}, {"internet_down_mbps": 900, "internet_up_mbps": 100}, {"internet_down_mbps": 900, "internet_up_mbps": 99}),
        ({"node_gbps": 100}, {"node_network_gbps": 100}, {"node_network_gbps": 99}),
        ({"provider": "Lambda"}, {"provider": "lambda"}, {"provider": "runpod"}),
        ({"currency": "usd"}, {"currency": "USD"}, {"currency": "CNY"}),
    ],
)  # fmt: skip
def test_every_filter_leaves_what_fits(offer, found, asked, fits, too_little):
    offer("fits", **fits)
    offer("too little", **too_little)
    assert found(**asked) == ["fits"]


@pytest.mark.parametrize(
    ("asked", "silent"),
    [
        ({"gpu": "H100"}, {"gpu_model": ""}),
        ({"gpus": 4}, {"gpu_count": None}),
        ({"total_memory_gib": 160}, {"gpu_memory_mib": None}),
        ({"max_price": 2}, {"price": None}),
        ({"region": "eu"}, {"region": ""}),
        ({"tenancy": "dedicated_host"}, {"tenancy": "unknown"}),
        ({"market": "spot"}, {"market": "unknown"}),
        ({"interconnect": "nvlink"}, {"gpu_interconnect": ""}),
        ({"vcpus": 8}, {"vcpus": None}),
        ({"internet_mbps": 100}, {"internet_up_mbps": None}),
        ({"node_gbps": 100}, {"node_network_gbps": None}),
    ],
)
def test_silence_passes_and_is_marked_unless_it_is_to_fall(offer, find, asked, silent):
    offer("silent", **silent)
    (shown,) = find(**asked)
    assert shown.missing == tuple(asked)
    assert find(**asked, unknown="drop") == []


def test_one_direction_of_the_internet_that_is_told_counts(offer, found):
    offer("told", internet_down_mbps=80)
    assert found(internet_mbps=80, unknown="drop") == ["told"]
    assert found(internet_mbps=81) == []


def test_a_price_without_a_currency_is_in_dollars_and_others_are_not_compared(offer, found):
    offer("dollars", price="2")
    offer("yuan", price="1", currency="CNY")
    assert found(max_price=3) == ["dollars"]
    assert found(max_price=3, currency="CNY") == ["yuan"]


def test_prices_are_sorted_currency_by_currency_and_unknown_ones_last(offer, found):
    offer("dear", price="9")
    offer("yuan", price="5", currency="CNY")
    offer("unknown", price=None)
    offer("cheap", price="1", gpu_count=8)
    assert found(sort="price") == ["yuan", "cheap", "dear", "unknown"]


def test_a_gpu_that_is_asked_for_pays_for_those_that_are_not(offer, found):
    """Sixteen dollars for eight are two a GPU, and sixteen for the one that is wanted."""
    offer("eight", price="16", gpu_count=8)
    offer("one", price="3")
    assert found(sort="gpu_price") == ["eight", "one"]
    assert found(sort="gpu_price", gpus=1) == ["one", "eight"]


def test_other_orders(offer, found):
    offer("a", gpu_count=2, internet_down_mbps=10, node_network_gbps=400, priced_on="2025-01-01")
    offer("b", gpu_count=8, internet_down_mbps=1000, node_network_gbps=10, priced_on="2026-01-01")
    offer("silent", gpu_count=None, priced_on="2024-01-01")
    assert found(sort="memory") == ["b", "a", "silent"]
    assert found(sort="network") == ["b", "a", "silent"]
    assert found(sort="network", nodes=2) == ["a", "b", "silent"]
    assert found(sort="age") == ["b", "a", "silent"]


def test_the_best_fit_is_first(offer, found):
    offer("eight", gpu_count=8, price="16")
    offer("four", gpu_count=4, price="8")
    assert found(gpus=4) == ["four", "eight"]


def test_a_rating_of_the_team_moves_its_offers(acme, alice, offer, find):
    offer("a", provider="lambda")
    offer("b", provider="runpod")
    actor = Actor(alice, "alice", "page")
    for provider, stars in (("runpod", 5), ("lambda", 1)):
        rate_support(actor=actor, team=acme, provider=provider, stars=stars, note="", now=timezone.now())
    only_support = dict.fromkeys(("w_gpu", "w_network", "w_images", "w_price", "w_health"), 0)
    assert [(one.offer.key, round(one.score.total)) for one in find(**only_support)] == [("b", 100), ("a", 0)]


def test_weights_are_part_of_the_search(offer, found):
    offer("fast", price="4", internet_down_mbps=10_000)
    offer("cheap", price="1", internet_down_mbps=60)
    assert found() == ["fast", "cheap"]
    assert found(w_price=10, w_network=0) == ["cheap", "fast"]


def test_only_offers_of_an_account_that_has_the_image_there(acme, lab, offer, found):
    live = OfferSource.objects.create(team=acme, kind=SourceKind.LIVE, name="Lab", account=lab)
    Image.objects.create(account=lab, external_id="i", name="train-cuda-13", region="eu-1")
    offer("here", source=live, region="eu-1")
    offer("elsewhere", source=live, region="us-1")
    offer("others")
    assert found(image="cuda-13") == ["here"]


def test_offers_of_a_disconnected_account_are_gone(acme, lab, offer, found):
    live = OfferSource.objects.create(team=acme, kind=SourceKind.LIVE, name="Lab", account=lab)
    offer("live", source=live)
    assert found() == ["live"]
    lab.disconnected_at = timezone.now()
    lab.save()
    assert found() == []


def test_another_teams_offers_are_not_found(rival, offer, found):
    theirs = OfferSource.objects.create(team=rival, kind=SourceKind.IMPORT, name="Prices")
    offer("theirs", source=theirs)
    assert found() == []


@pytest.mark.parametrize(
    "wrong",
    [{"gpus": "0"}, {"gpus": "many"}, {"max_price": "-1"}, {"currency": "US1"}, {"market": "flea"}, {"w_gpu": "11"}, {"sort": "luck"}],
)  # fmt: skip
def test_a_search_that_cannot_be_names_its_field(wrong):
    form = SearchForm(wrong)
    assert set(form.errors) == set(wrong)


@pytest.mark.parametrize("gpu", [gpu for gpu in gpus().values() if gpu.nvml_name], ids=lambda gpu: gpu.id)
def test_the_planners_names_of_gpus_are_understood(gpu):
    """Its plans lead to offers by these."""
    memory_mib = gpu.memory_bytes // MIB
    assert models_asked(gpu.name, []) == [canonical(gpu.nvml_name, memory_mib=memory_mib)]
