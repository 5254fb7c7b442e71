"""What a complete listing does to the machines we know."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.inventory.models import Instance
from fleet.inventory.poll import poll_account
from fleet.providers.base import Billing, InstanceState, ProviderImage, Tenancy
from fleet.providers.errors import ScopeMissing
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON

MINUTE = timedelta(minutes=1)


@pytest.fixture
def poll(lab, provider):
    """poll(machine, …, after=2) polls `lab` two minutes past noon with these machines in the list."""

    def run(*machines, after: int = 0):
        provider.machines = list(machines)
        lab.refresh_from_db()
        return poll_account(account=lab, now=NOON + after * MINUTE)

    return run


def test_a_machine_nobody_registered_appears_as_unmanaged(poll, listed, acme, lab):
    poll(listed("i-1", rate="2.50", tenancy=Tenancy.DEDICATED_GPU, gpu_count=8))
    machine = Instance.objects.get()
    assert (machine.team, machine.account, machine.managed, machine.owner) == (acme, lab, False, None)
    assert (machine.external_id, machine.region, machine.gpu_count) == ("i-1", "eu-1", 8)
    assert (machine.price_per_hour, machine.currency, machine.priced_at) == (Decimal("2.5"), "USD", NOON)
    assert machine.is_exclusive is False
    lab.refresh_from_db()
    assert (lab.listed_at, lab.failures, lab.error_kind) == (NOON, 0, "")
    assert AuditEntry.objects.get(action="account.listing").new == {"found": ["i-1"], "gone": []}


def test_a_machine_found_off_is_off_since_its_provider_says(poll, listed):
    poll(
        listed("i-1", state=InstanceState.STOPPED, stopped_at=NOON - timedelta(days=4)),
        listed("i-2", state=InstanceState.STOPPED, started_at=NOON - timedelta(days=9)),
    )
    off_since = dict(Instance.objects.values_list("external_id", "state_since"))
    assert off_since == {"i-1": NOON - timedelta(days=4), "i-2": NOON}


def test_the_next_listing_overwrites_what_the_provider_says(poll, listed):
    poll(listed("i-1", rate="2.50"))
    poll(listed("i-1", rate="2.75", name="renamed", state=InstanceState.STOPPED, billing=Billing.STORAGE), after=1)
    machine = Instance.objects.get()
    assert (machine.name, machine.state, machine.billing) == ("renamed", "stopped", "storage")
    assert (machine.price_per_hour, machine.state_since) == (Decimal("2.75"), NOON + MINUTE)


def test_and_never_what_people_typed(poll, listed, project, bob):
    poll(listed("i-1", labels={"provider": "theirs"}))
    typed = {"managed": True, "owner": bob, "project": project, "labels": {"ours": "kept"}}
    Instance.objects.update(**typed)
    poll(listed("i-1", name="renamed", labels={"ours": "overwritten?"}), after=1)
    machine = Instance.objects.get()
    assert {name: getattr(machine, name) for name in typed} == typed
    assert machine.provider_labels == {"ours": "overwritten?"}


def test_missing_once_is_not_gone(poll, listed):
    poll(listed("i-1"))
    poll(after=1)
    poll(after=2)
    machine = Instance.objects.get()
    assert (machine.gone_at, machine.state, machine.missed_listings) == (None, "running", 2)
    assert machine.last_seen_at == NOON


def test_missing_from_three_complete_listings_is_gone(poll, listed):
    poll(listed("i-1"), listed("i-2"))
    for after in (1, 2, 3):
        poll(listed("i-2"), after=after)
    machine = Instance.objects.get(external_id="i-1")
    assert (machine.gone_at, machine.state, machine.billing) == (NOON + 3 * MINUTE, "terminated", "none")
    assert machine.reason == "no longer in the provider's list"
    assert Instance.objects.get(external_id="i-2").gone_at is None


def test_how_many_listings_is_a_setting(poll, listed, settings):
    settings.LISTINGS_UNTIL_GONE = 1
    poll(listed("i-1"), listed("i-2"))
    poll(listed("i-2"), after=1)
    assert Instance.objects.get(external_id="i-1").gone_at == NOON + MINUTE


def test_a_failed_listing_counts_for_nothing(poll, listed, provider):
    poll(listed("i-1"))
    provider.error = RuntimeError("cut off midway")
    for after in (1, 2, 3, 4):
        poll(after=after)
    assert Instance.objects.get().missed_listings == 0


def test_a_machine_that_comes_back_is_there_again(poll, listed):
    poll(listed("i-1"))
    for after in (1, 2, 3):
        poll(after=after)
    poll(listed("i-1"), after=4)
    machine = Instance.objects.get()
    assert (machine.gone_at, machine.missed_listings, machine.state, machine.billing) == (None, 0, "running", "full")


def test_what_the_provider_calls_terminated_is_gone_at_once(poll, listed):
    poll(listed("i-1"))
    terminated = listed("i-1", state=InstanceState.TERMINATED, billing=Billing.NONE)
    poll(terminated, after=1)
    poll(terminated, after=2)
    poll(after=3)
    assert Instance.objects.get().gone_at == NOON + MINUTE


def test_a_raw_word_that_nobody_taught_us_is_unknown_and_kept(poll, listed):
    poll(listed("i-1", state=InstanceState.UNKNOWN, raw_state="defragmenting", billing=Billing.UNKNOWN))
    machine = Instance.objects.get()
    assert (machine.state, machine.raw_state, machine.billing) == ("unknown", "defragmenting", "unknown")


def test_the_same_id_in_two_regions_is_two_machines(poll, listed):
    poll(listed("i-1", region="eu-1"), listed("i-1", region="us-1"))
    assert Instance.objects.count() == 2


def test_a_machine_knows_its_image_own_or_not(poll, listed, provider):
    provider.own_images = [ProviderImage("img-1", "vision 2.4", NOON, "eu-1")]
    poll(listed("i-1", image_id="img-1"), listed("i-2", image_id="public-9", image_name="Ubuntu"))
    images = Instance.objects.order_by("external_id").values_list("external_id", "image__name", "image__owned")
    assert list(images) == [("i-1", "vision 2.4", True), ("i-2", "Ubuntu", False)]


def test_a_deleted_image_stays_on_record(poll, listed, provider, lab):
    provider.own_images = [ProviderImage("img-1", "vision 2.4")]
    poll()
    provider.own_images = []
    poll(after=1)
    assert lab.images.get().gone_at == NOON + MINUTE


def test_images_that_the_key_may_no_longer_read_are_not_gone(poll, provider, lab, monkeypatch):
    provider.own_images = [ProviderImage("img-1", "vision 2.4")]
    poll()
    monkeypatch.setattr(provider, "images", refuse_to_list)
    poll(after=1)
    lab.refresh_from_db()
    assert (lab.images.get().gone_at, lab.error_kind) == (None, "")


def refuse_to_list(adapter: object) -> Iterator[ProviderImage]:
    raise ScopeMissing("images")


def test_the_number_of_queries_does_not_grow_with_the_fleet(poll, listed, django_assert_max_num_queries):
    poll(*(listed(f"i-{number}", rate="1") for number in range(300)))
    with django_assert_max_num_queries(25):
        poll(*(listed(f"i-{number}", rate="2") for number in range(300)), after=1)
