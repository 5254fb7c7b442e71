"""How well an offer fits: six parts by weight, each explained, silence in the middle, what nobody rated or measured without weight."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.inventory.offers.need import Facts, Need
from fleet.inventory.offers.score import Place, Weights, score
from fleet.inventory.offers.words import reason_of, score_sentence

FOUR = Need(gpu="H100 SXM", gpus=4)
EIGHT_GPUS = Facts(gpu_model="H100 SXM", gpu_count=8, gpu_memory_mib=81_559, price_per_hour=Decimal(24))
RENTS = Place(adapter=True, creates=True, saves_images=True, support=5)


def parts_of(facts=EIGHT_GPUS, need=FOUR, place=RENTS, cheapest=None, weights=None):
    return {part.name: part for part in score(facts, need, place, cheapest, weights or Weights()).parts}


def total(facts=EIGHT_GPUS, need=FOUR, place=RENTS, cheapest=None, weights=None):
    return score(facts, need, place, cheapest, weights or Weights()).total


def test_the_order_of_the_weights_is_the_order_that_renters_are_advised_to_look_in():
    weights = [part.weight for part in parts_of().values()]
    assert weights == sorted(weights, reverse=True)
    assert list(parts_of()) == ["gpu", "network", "images", "support", "price", "health"]


def test_eight_gpus_where_four_are_asked_for_are_half_a_fit():
    assert parts_of()["gpu"].value == 0.5
    assert reason_of(parts_of()["gpu"]) == "4 of its 8 GPUs are asked for"
    assert parts_of(EIGHT_GPUS._replace(gpu_count=4))["gpu"].value == 1.0


def test_memory_is_compared_where_no_count_is_asked_for():
    part = parts_of(need=Need(total_memory_gib=320))["gpu"]
    assert part.value == pytest.approx(320 / (8 * 81_559 / 1024))


def test_nothing_asked_about_gpus_has_no_weight():
    assert parts_of(need=Need())["gpu"].weight == 0


def test_what_is_not_told_counts_as_the_middle():
    """It neither beats a good network nor loses to a bad one."""
    slow, silent, fast = (
        total(EIGHT_GPUS._replace(internet_down_mbps=speed, internet_up_mbps=speed)) for speed in (20.0, None, 10_000.0)
    )
    assert slow < silent < fast


def test_one_machine_is_judged_by_the_internet_and_several_by_the_network_between_them():
    facts = EIGHT_GPUS._replace(internet_down_mbps=50.0, node_network_gbps=400.0)
    assert parts_of(facts)["network"].value == 0.0
    assert parts_of(facts, need=Need(gpus=4, nodes=2))["network"].value == 1.0


def test_support_that_nobody_rated_has_no_weight_and_changes_nothing():
    unrated = RENTS._replace(support=None)
    assert parts_of(place=unrated)["support"].weight == 0
    assert total(place=RENTS._replace(support=5)) > total(place=unrated) > total(place=RENTS._replace(support=1))


def test_machines_that_nobody_knows_enough_of_have_no_weight_and_change_nothing():
    unknown = parts_of()["health"]
    assert (unknown.weight, unknown.value, reason_of(unknown)) == (
        0,
        None,
        "too few GPU-days of your machines there: no weight",
    )
    sound, faulty = RENTS._replace(health=5), RENTS._replace(health=1)
    assert total(place=sound) > total() > total(place=faulty)
    assert reason_of(parts_of(place=sound)["health"]) == "5 of 5 by the faults of your machines there"


def test_health_weighs_as_much_as_the_search_says():
    faulty = RENTS._replace(health=1)
    assert (
        total(place=faulty, weights=Weights(health=10))
        < total(place=faulty)
        < total(place=faulty, weights=Weights(health=0))
    )


def test_what_cannot_be_rented_from_here_loses_there():
    worse = [RENTS, RENTS._replace(saves_images=False), Place(adapter=True), Place()]
    values = [parts_of(place=place)["images"].value for place in worse]
    assert values == [1.0, 0.5, 0.0, 0.0]
    assert reason_of(parts_of(place=Place())["images"]).startswith("no adapter")


def test_an_image_that_is_asked_for_counts_more_than_that_some_can_be_saved():
    part = parts_of(place=Place(adapter=True, has_image=True))["images"]
    assert (part.value, reason_of(part)) == (0.5, "your account has the image there; its adapter cannot rent")


def test_a_price_is_held_against_the_cheapest_that_fits():
    """24 an hour for 4 GPUs asked for is 6 for each; the cheapest costs 3."""
    part = parts_of(cheapest=Decimal(3))["price"]
    assert part.value == 0.5
    assert reason_of(part) == "$6.00 for a GPU and hour; the cheapest that fits costs $3.00"


def test_weights_are_the_callers():
    only_price = Weights(gpu=0, network=0, images=0, support=0, price=1)
    assert total(cheapest=Decimal(6), weights=only_price) == 100
    assert total(weights=Weights(0, 0, 0, 0, 0)) == 0


def test_the_score_is_the_mean_of_its_parts_by_weight():
    told = score(EIGHT_GPUS, FOUR, RENTS, Decimal(3), Weights())
    by_hand = sum(part.weight * part.counted for part in told.parts) / sum(part.weight for part in told.parts)
    assert told.total == pytest.approx(100 * by_hand)


def test_the_sentence_says_what_speaks_for_it_and_what_against():
    facts = EIGHT_GPUS._replace(internet_down_mbps=50.0)
    sentence = score_sentence(tuple(parts_of(facts).values()))
    assert sentence.startswith("For it: ")
    assert "Against it: 50 Mbit/s to the internet" in sentence
    assert score_sentence(()) == "Nothing told of it speaks for it or against it."
