"""Links and collectives: which is bounded by what."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogue.gpus import gpus
from planner.catalogue.links import NETWORKS, Network, network_port, nvlink, pcie, usual_network
from planner.speed.collectives import all_gather_seconds, all_reduce_seconds, all_to_all_seconds, slowest_link
from tests.planner.speed_runs import A100, H100


def test_every_preset_has_a_source_and_reaches_less_than_it_prints() -> None:
    ports = [network_port(name) for name in NETWORKS]
    cards = [link for gpu in gpus().values() for link in (nvlink(gpu), pcie(gpu)) if link]
    for link in [*ports, *cards]:
        assert link.source
        assert 0 < link.reached < link.bandwidth


def test_nvlink_of_the_catalogue_counts_one_direction() -> None:
    link = nvlink(H100)
    assert link
    assert link.bandwidth == 450e9
    assert nvlink(gpus()["rtx-4090-24"]) is None


def test_a_card_without_peer_access_goes_through_host_memory() -> None:
    geforce, workstation = pcie(gpus()["rtx-4090-24"]), pcie(gpus()["rtx-6000-ada-48"])
    assert geforce.bandwidth == workstation.bandwidth
    assert geforce.reached < workstation.reached


def test_a_ring_moves_the_part_that_each_does_not_have() -> None:
    link = network_port("infiniband-400")
    gathered = all_gather_seconds(8e9, 4, link)
    assert gathered == pytest.approx(6e9 / link.reached + 3 * link.latency)
    assert all_reduce_seconds(8e9, 4, link) == 2 * gathered
    assert all_gather_seconds(8e9, 1, link) == 0


def test_a_group_that_leaves_its_domain_is_bounded_by_the_ports_of_its_members() -> None:
    network = Network(nvlink(A100) or pcie(A100), network_port("infiniband-200"))
    assert slowest_link(network, 8) is network.inside
    assert slowest_link(network, 16).bandwidth == 8 * network.between.bandwidth
    assert slowest_link(network, 2, stride=8).bandwidth == network.between.bandwidth


def test_domains_are_racks_boards_or_single_cards() -> None:
    assert usual_network(gpus()["gb200-186"]).domain == 72
    assert usual_network(H100).domain == 8
    alone = usual_network(gpus()["gh200-96"])
    assert slowest_link(alone, 2).medium == "network"


def test_experts_that_leave_the_machine_wait_for_its_port() -> None:
    network = usual_network(H100)
    assert all_to_all_seconds(1e9, 64, network) > 5 * all_to_all_seconds(1e9, 8, network)


@settings(max_examples=60, deadline=None)
@given(size=st.floats(1, 1e12), group=st.integers(1, 1024), factor=st.floats(1, 100))
def test_a_faster_port_is_never_slower(size: float, group: int, factor: float) -> None:
    slow = usual_network(A100)
    fast = Network(slow.inside, network_port("infiniband-200", ports_per_gpu=factor), slow.domain)
    assert all_reduce_seconds(size, group, slowest_link(fast, group)) <= all_reduce_seconds(
        size, group, slowest_link(slow, group)
    )
    assert all_to_all_seconds(size, group, fast) <= all_to_all_seconds(size, group, slow)
