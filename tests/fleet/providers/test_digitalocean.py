"""DigitalOcean's own ways, beyond the contract: hidden GPU Droplets, destroying once, images by name, megabits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, Capability, ImageState, Market, OfferQuery, Ref, Ssh, Tenancy
from fleet.providers.digitalocean import DigitalOcean
from fleet.providers.errors import Invalid, Unavailable

KIND, TOKEN = "digitalocean", "rr-0123456789abcdef"


def test_a_droplet_in_our_words(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_raw, machine.gpu_model, machine.gpu_count) == ("nvidia_h100", "H100 SXM", 8)
    assert machine.gpu_memory_mib == 80 * 1024
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert (machine.vcpus, machine.ram_mib, machine.disk_gb) == (160, 1_966_080, 43_008)
    assert machine.ssh == (Ssh("203.0.113.6"),)
    assert machine.labels == {"team": "ml"}


def test_droplets_with_and_without_gpus_are_listed(adapter, fake):
    """The list leaves GPU Droplets out unless they are asked for, and then it leaves the others out."""
    fake.seed(3)
    fake.add(fake.droplet(fake.number(), "bastion", fake.size("s-4vcpu-8gb"), []))
    machines = {machine.name: machine for machine in adapter.instances()}
    assert len(machines) == 4
    assert machines["bastion"].gpu_count == 0


def test_off_costs_as_much_as_on(adapter, fake):
    (ref,) = fake.seed()
    on = adapter.instance(ref)
    fake.show(ref, raw_state="off")
    off = adapter.instance(ref)
    assert (off.billing, off.rate) == (Billing.FULL, on.rate)
    assert Capability.STOP not in DigitalOcean.capabilities
    assert not DigitalOcean.semantics.can_stop


def test_a_droplet_is_destroyed_once_however_often_it_is_asked(adapter, fake):
    """Who destroys one Droplet again and again gets the account flagged."""
    fake.slow_to_end = True
    (ref,) = fake.seed()
    for _ in range(3):
        adapter.terminate(ref)
    assert len(fake.asked("terminate")) == 1


def test_a_destroy_that_went_wrong_is_asked_again(adapter, fake):
    fake.slow_to_end = True
    (ref,) = fake.seed()
    adapter.terminate(ref)
    fake.actions[ref.external_id][0]["status"] = "errored"
    adapter.terminate(ref)
    assert len(fake.asked("terminate")) == 2


def test_a_destroy_that_was_forgotten_is_asked_for_anew(adapter, fake, time_machine):
    time_machine.move_to("2026-11-30T10:00:00Z", tick=False)
    fake.slow_to_end = True
    (ref,) = fake.seed()
    adapter.terminate(ref)
    time_machine.shift(29 * 60)
    adapter.terminate(ref)
    assert len(fake.asked("terminate")) == 1
    time_machine.shift(2 * 60)
    adapter.terminate(ref)
    assert len(fake.asked("terminate")) == 2


def test_what_is_gone_is_not_destroyed(adapter, fake):
    adapter.terminate(Ref("404"))
    assert fake.asked("terminate") == []


def test_a_page_that_holds_fewer_than_are_counted_raises(adapter, fake, monkeypatch):
    fake.seed(2)
    whole = fake.page

    def short(request, key, rows):
        return whole(request, key, rows[:1]) if key != "droplets" else one_of_two(whole(request, key, rows[:1]))

    monkeypatch.setattr(fake, "page", short)
    with pytest.raises(Unavailable, match="counts 2 rows and lists 1"):
        list(adapter.instances())


def one_of_two(answer):
    return replace(answer, body=answer.body.replace(b'"total": 1', b'"total": 2'))


def test_what_runs_is_not_powered_on_again(adapter, fake):
    (ref,) = fake.seed()
    adapter.start(ref)
    assert fake.asked("start") == []


def test_an_image_being_saved_is_known_by_its_name(adapter, fake):
    """The answer names the action; the snapshot's id is told when it is done."""
    (ref,) = fake.seed()
    saved = adapter.save_image(ref, "vision-2")
    assert (saved.external_id, saved.name, saved.state) == ("", "vision-2", ImageState.PENDING)
    assert list(adapter.images()) == []
    fake.settle()
    (image,) = adapter.images()
    assert (image.name, image.size_gb) == ("vision-2", Decimal("31.5"))


def test_measurements_in_percent_and_bytes(adapter, fake):
    (ref,) = fake.seed()
    (usage,) = adapter.metrics([ref])
    assert usage.cpu_percent == 75
    assert usage.memory_percent == 75
    assert usage.network_received_bytes_per_s == 1_000_000
    assert usage.network_sent_bytes_per_s == 250_000
    assert usage.at.tzinfo
    assert usage.gpu_utilization_percent == ()


def test_a_key_that_is_there_is_not_added_again(adapter, fake):
    key = "ssh-ed25519 AAAAC3Nza alice@laptop"
    for number in (1, 2):
        adapter.create(replace(fake.order(), ssh_public_key=key), f"rr-000000000000000{number}")
    assert len(fake.asked("add_key")) == 1
    assert fake.asked("create")[1].json["ssh_keys"] == [fake.keys[0]["id"]]


@pytest.mark.parametrize(
    "wish", [{"disk_gb": 500}, {"max_price_per_hour": Decimal(1)}, {"market": Market.SPOT}, {"image_id": ""}]
)
def test_a_wish_that_cannot_be_met_is_refused_and_not_dropped(adapter, fake, wish):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **wish), TOKEN)
    assert fake.machines == {}


def test_offers_are_sizes_with_gpus_once_a_region(adapter, fake):
    offers = list(adapter.offers(OfferQuery()))
    assert [(offer.external_id, offer.region) for offer in offers] == [
        ("gpu-h100x8-640gb", "nyc2"),
        ("gpu-h100x8-640gb", "tor1"),
    ]
    assert all(offer.available and offer.gpu_interconnect == "nvlink" for offer in offers)
