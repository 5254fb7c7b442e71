"""Is a machine what was rented? No name that a driver gives a card may raise a false flag."""

from __future__ import annotations

import pytest

from fleet.providers.drift import Card, Drift, Rented, differences

GIB = 1 << 30


@pytest.mark.parametrize(
    ("rented", "name", "gib"),
    [
        (Rented("H100 SXM", 1, 81920), "NVIDIA H100 80GB HBM3", 79.6),
        (Rented("H100 PCIe", 1, 81920), "NVIDIA H100 PCIe", 79.6),
        (Rented("A100 SXM 80 GB", 1, 81920), "NVIDIA A100-SXM4-80GB", 80),
        (Rented("A100 SXM 40 GB", 1, 40960), "NVIDIA A100-SXM4-40GB", 40),
        (Rented("A10G", 1, 24576), "NVIDIA A10G", 22.5),
        (Rented("T4", 1, 16384), "Tesla T4", 15),
        (Rented("L4", 1, 24576), "NVIDIA L4", 22.5),
        (Rented("RTX 4090", 1, 24564), "NVIDIA GeForce RTX 4090", 24),
        # What one of both sides does not say, or what nobody taught us, is not compared.
        (Rented("", 1, None), "NVIDIA H100 80GB HBM3", 80),
        (Rented("A100", 1, None), "NVIDIA A100-SXM4-40GB", 40),
        (Rented("Moonshot 9", 1, None), "NVIDIA H100 80GB HBM3", 80),
        (Rented("H100 SXM", 1, None), "NVIDIA Z1000", 80),
        (Rented("H100 SXM", None, None), "NVIDIA H100 80GB HBM3", None),
    ],
)
def test_no_false_flag(rented, name, gib):
    assert differences(rented, [Card(name, None if gib is None else int(gib * GIB))]) == ()


def test_another_model_is_told():
    (found,) = differences(Rented("H100 SXM", 2, None), [Card("NVIDIA A100-SXM4-80GB"), Card("NVIDIA A100-SXM4-80GB")])
    assert (found.kind, found.found, found.rented) == (Drift.MODEL, "A100 SXM 80 GB", "H100 SXM")


def test_less_memory_is_told():
    found = differences(Rented("", 1, 81920), [Card("NVIDIA Something", 40 * GIB)])
    assert [(one.kind, one.found, one.rented) for one in found] == [(Drift.MEMORY, "40", "80")]


def test_more_cards_than_rented_are_told_and_fewer_are_an_alert_of_their_own():
    cards = [Card("NVIDIA H100 80GB HBM3")] * 4
    assert [one.kind for one in differences(Rented("H100 SXM", 2, None), cards)] == [Drift.MORE]
    assert differences(Rented("H100 SXM", 8, None), cards) == ()


def test_parts_of_a_gpu_say_nothing_of_the_card():
    parts = [Card("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * GIB, is_part=True)] * 7
    assert differences(Rented("H100 SXM", 1, 81920), parts) == ()
    assert differences(Rented("H100 SXM", 1, 81920), [Card("NVIDIA H100 80GB HBM3", 80 * GIB), *parts]) == ()
