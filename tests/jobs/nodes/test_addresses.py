"""Which addresses the machines of a job try, and in which order."""

from __future__ import annotations

import pytest

from jobs.nodes.addresses import Interface, candidates, interfaces_of


def addresses(machines) -> list[list[str]]:
    return [[each.address for each in machine] for machine in candidates(machines)]


def test_the_network_that_all_are_in_comes_first_the_private_and_the_fast_one_before_the_others():
    def machine(number: int) -> list[Interface]:
        return [
            Interface("eth0", f"203.0.114.{number}", 24, 1000),
            Interface("eth1", f"10.0.0.{number}", 24, 10_000),
            Interface("ib0", f"10.1.0.{number}", 24, 200_000),
            Interface("eth2", f"192.168.{number}.1", 24, 400_000),
        ]

    assert addresses([machine(4), machine(5)])[0] == ["10.1.0.4", "10.0.0.4", "203.0.114.4", "192.168.4.1"]


def test_an_address_that_both_have_is_a_way_to_nobody():
    machines = [[Interface("eth0", "172.17.0.2", 16), Interface("eth1", f"10.9.0.{n}", 24)] for n in (1, 2)]
    assert addresses(machines) == [["10.9.0.1", "172.17.0.2"], ["10.9.0.2", "172.17.0.2"]]


def test_machines_of_different_networks_try_all_they_have():
    machines = [[Interface("eth0", "10.0.0.4", 24)], [Interface("eth0", "10.7.0.4", 24)]]
    assert addresses(machines) == [["10.0.0.4"], ["10.7.0.4"]]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "eth0 10.0.0.1",
        "eth0 10.0.0.1 24 fast",
        "eth0 10.0.0.1 99 1000",
        "eth0 10.0.0.999 24 1000",
        "eth0 127.0.0.1 8 -1",
        "eth0 169.254.169.254 16 -1",
        "eth0 fe80::1 64 -1",
        "docker0 172.17.0.1 16 -1",
        "eth0;reboot 10.0.0.1 24 -1",
        "-oProxyCommand 10.0.0.1 24 -1",
        "an-interface-with-too-long-a-name 10.0.0.1 24 -1",
    ],
)
def test_what_a_machine_says_that_is_no_address_of_an_interface_is_left_out(line):
    assert interfaces_of([line]) == []


def test_what_it_says():
    lines = ["eth1 10.0.0.4 24 25000", "ib0 2001:db8:0:0:0:0:0:7 64 -1"]
    assert interfaces_of(lines) == [Interface("eth1", "10.0.0.4", 24, 25_000), Interface("ib0", "2001:db8::7", 64)]
    assert len(interfaces_of(["eth1 10.0.0.4 24 -1"] * 5000)) == 32
