"""From what the machines of a job said of each other to a way for each, or to what stands in between."""

from __future__ import annotations

from jobs.nodes.addresses import Interface
from jobs.nodes.meeting import Obstacle, Said, Way, judge, said_of

A = [Interface("eth1", "10.0.0.4", 24), Interface("eth0", "203.0.114.4", 24)]
B = [Interface("eth1", "10.0.0.5", 24), Interface("eth0", "203.0.114.5", 24)]
C = [Interface("ens3", "10.0.0.6", 24)]


def test_the_first_address_at_which_every_other_reached_it():
    a = Said({(1, 0): "timeout", (1, 1): "ok", (2, 0): "ok"}, 24.5)
    b = Said({(0, 0): "ok", (0, 1): "ok", (2, 0): "ok"}, 9.9)
    c = Said({(0, 0): "ok", (1, 0): "ok", (1, 1): "ok"})
    assert judge([A, B, C], [a, b, c]) == [
        Way("10.0.0.4", "eth1", 24.5),
        Way("203.0.114.5", "eth0", 9.9),
        Way("10.0.0.6", "ens3", None),
    ]
    assert [Way("", "", rate).is_slow for rate in (24.5, 9.9, None)] == [False, True, False]


def test_who_does_not_reach_whom():
    a, b = Said({(1, 0): "ok"}), Said({(0, 0): "timeout", (0, 1): "refused"})
    assert judge([A, B], [a, b]) == [Obstacle("no_way", 1, 0)]


def test_somebody_else_who_has_its_address_is_not_it():
    a, b = Said({(1, 0): "stranger"}), Said({(0, 0): "ok"})
    assert judge([A, B], [a, b]) == [Obstacle("no_way", 0, 1)]


def test_each_is_reached_but_not_at_one_address():
    a = Said({(1, 0): "ok", (1, 1): "timeout", (2, 0): "ok"})
    b = Said({(0, 0): "ok", (2, 0): "ok"})
    c = Said({(0, 0): "ok", (1, 0): "timeout", (1, 1): "ok"})
    assert judge([A, B, C], [a, b, c]) == [Obstacle("no_way", 0, 1), Obstacle("no_way", 2, 1)]


def test_only_the_port_of_the_job_is_open():
    a, b = Said({(1, 0): "ok"}, closed=True), Said({(0, 0): "ok"}, 3.0)
    assert judge([A, B], [a, b]) == [Obstacle("ports_closed", 0, 1)]


def test_what_keeps_them_from_being_asked():
    assert judge([A, []], [Said(), Said()]) == [Obstacle("no_interface", 1)]
    assert judge([A, B], [Said(port="Address already in use"), Said()]) == [Obstacle("port_taken", 0)]


def test_a_machine_may_say_anything():
    said = said_of(
        {
            "reach.1.0": "ok",
            "reach.1.1": "<b>",
            "reach.x.0": "ok",
            "reach.1.2": "refused",
            "sent": "9" * 30,
            "took": "1",
        }
    )
    assert said == Said({(1, 0): "ok", (1, 2): "refused"})
    for sent, took in (("-5", "1"), ("5", "nan"), ("5", "0"), ("many", "1"), ("5", "")):
        assert said_of({"sent": sent, "took": took}).gbit_per_second is None
    assert said_of({"sent": "2500000000", "took": "2.0"}).gbit_per_second == 10.0
