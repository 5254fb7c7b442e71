from __future__ import annotations

import pytest

from fleet.inventory.reach import reach_problem


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("", "unset"),
        ("rackrent.example", "malformed"),
        ("ftp://rackrent.example", "malformed"),
        ("https://[::1", "malformed"),
        ("https://", "malformed"),
        ("http://localhost:8400", "loopback"),
        ("http://127.0.0.1:8400", "loopback"),
        ("http://[::1]:8400", "loopback"),
        ("http://0.0.0.0:8400", "loopback"),
        ("http://[::ffff:127.0.0.1]", "loopback"),
        ("https://169.254.1.1", "link_local"),
        ("https://[fe80::1]", "link_local"),
        ("https://10.0.0.5", "private"),
        ("https://192.168.1.4:8400", "private"),
        ("https://100.64.0.9", "private"),
        ("https://[fd00::5]", "private"),
        ("https://gpu-desk", "local_name"),
        ("https://gpu-desk.local", "local_name"),
        ("https://rackrent.internal.", "local_name"),
        ("http://rackrent.example", "not_encrypted"),
    ],
)
def test_an_address_that_rented_machines_cannot_reach_is_told_apart(address: str, code: str):
    problem = reach_problem(address)
    assert problem
    assert problem.code == code
    assert problem.reason
    assert problem.remedy


@pytest.mark.parametrize("address", ["https://rackrent.example", "https://8.8.8.8", "https://[2606:4700::1]:8443"])
def test_a_public_address_is_fine(address: str):
    assert reach_problem(address) is None


def test_what_may_work_is_told_from_what_cannot():
    private, loopback = reach_problem("https://10.0.0.5"), reach_problem("https://127.0.0.1")
    assert private
    assert loopback
    assert (private.certain, loopback.certain) == (False, True)
