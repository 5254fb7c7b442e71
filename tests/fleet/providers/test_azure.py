"""What is Azure's own: two kinds of stopped, names in any case, links to next pages, and requests as Microsoft's SDK makes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

import pytest

from fleet.providers.azure import Azure
from fleet.providers.base import Billing, InstanceState, Market, Money, NoticeKind, OfferQuery, Ref, Ssh, Tenancy
from fleet.providers.errors import AuthFailed, Invalid, InvalidOption, QuotaOrFunds, ScopeMissing, Unavailable
from tests.fleet.providers.fakes.azure import GROUP, LOCATION, SIZE, SUBSCRIPTION, AzureFake
from tests.fleet.providers.fakes.azure_models import check
from tests.fleet.providers.fakes.description import Drift
from tests.fleet.providers.fakes.server import told

TOKEN = "rr-0123456789abcdef"


KIND = "azure"


def only(adapter):
    (machine,) = adapter.instances()
    return machine


def test_a_property_that_microsofts_models_do_not_have_is_a_drift(fake):
    row = fake.row(1)
    row["properties"]["hardwareProfile"]["colour"] = "blue"
    with pytest.raises(Drift, match=r"hardwareProfile has no \['colour'\]"):
        check("VirtualMachine", row)


@pytest.mark.parametrize(
    ("act", "call", "builder"),
    [
        ("list", lambda adapter, ref: list(adapter.instances()), "list_all"),
        ("states", lambda adapter, ref: list(adapter.instances()), "list_all"),
        ("find", lambda adapter, ref: adapter.instance(ref), "get"),
        ("start", lambda adapter, ref: adapter.start(ref), "start"),
        ("stop", lambda adapter, ref: adapter.stop(ref), "deallocate"),
        ("reboot", lambda adapter, ref: adapter.reboot(ref), "restart"),
        ("terminate", lambda adapter, ref: adapter.terminate(ref), "delete"),
    ],
)
def test_a_call_is_what_microsofts_own_client_sends(adapter, fake, act, call, builder):
    from azure.mgmt.compute.operations import _operations

    (ref,) = fake.seed()
    call(adapter, ref)
    (asked,) = fake.asked(act)
    where = {} if builder == "list_all" else {"resource_group_name": GROUP, "vm_name": "train-1"}
    more = {"states": {"status_only": "true"}, "find": {"expand": "instanceView"}}.get(act, {})
    own = getattr(_operations, f"build_virtual_machines_{builder}_request")(
        subscription_id=SUBSCRIPTION, **where, **more
    )
    assert (asked.method, asked.path) == (own.method, urlsplit(own.url).path)
    assert dict(asked.query) == dict(parse_qsl(urlsplit(own.url).query))


def test_a_machine_in_full(adapter, fake):
    fake.seed()
    machine = only(adapter)
    assert machine.ref == Ref(f"{GROUP}/train-1", LOCATION)
    assert (machine.vcpus, machine.ram_mib, machine.disk_gb) == (48, 450560, 128)
    assert machine.ssh == (Ssh("203.0.113.9", user="azureuser"),)
    assert machine.created_at == datetime(2026, 11, 1, 10, 0, 0, 123456, tzinfo=UTC)


def test_a_stop_deallocates(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    assert adapter.instance(ref).raw_state == "PowerState/deallocated"


def test_a_machine_whose_state_is_not_told_is_unknown_and_not_stopped(adapter, fake):
    fake.add(fake.row(1))["properties"]["instanceView"] = {}
    machine = only(adapter)
    assert (machine.state, machine.billing) == (InstanceState.UNKNOWN, Billing.UNKNOWN)


def test_the_port_that_goes_without_saying_is_no_other_address(monkeypatch, fake):
    monkeypatch.setenv("AZURE_ENDPOINT_URL", "https://management.azure.com")
    arm = Azure(fake.options)._arm
    assert arm._next("https://management.azure.com:443/a?$skiptoken=2") == ("/a", {"$skiptoken": "2"})
    for elsewhere in ("https://management.azure.com.evil.example/a", "http://management.azure.com/a", None):
        with pytest.raises(Unavailable):
            arm._next(elsewhere)


def test_a_next_page_elsewhere_is_not_followed(adapter, fake):
    """The token would go with it."""
    fake.seed(5)
    fake.next_host = "http://evil.example"
    with pytest.raises(Unavailable, match="not its own"):
        list(adapter.instances())


@pytest.mark.parametrize(
    ("told", "market", "rate"),
    [
        ({"priority": "Spot"}, Market.SPOT, Decimal("2.9")),
        ({"priority": None}, Market.ON_DEMAND, Decimal("7.346")),
        ({"priority": "A-word-of-2028"}, Market.UNKNOWN, None),
    ],
)
def test_markets_and_typed_prices(adapter, fake, told, market, rate):
    row = fake.add(fake.row(1))
    row["properties"] |= told
    machine = only(adapter)
    assert (machine.market, machine.rate) == (market, rate and Money(rate, "USD"))


@pytest.mark.parametrize(
    ("size", "model", "count", "tenancy"),
    [
        ("standard_nd96isr_h100_v5", "H100 SXM", 8, Tenancy.DEDICATED_GPU),
        ("Standard_NC40ads_H100_v5", "H100 NVL", 1, Tenancy.DEDICATED_GPU),
        ("Standard_ND96asr_v4", "A100 SXM 40 GB", 8, Tenancy.DEDICATED_GPU),
        ("Standard_NV6ads_A10_v5", "A10", 1, Tenancy.FRACTION),
        ("Standard_NC999_B300_v9", "", None, Tenancy.DEDICATED_GPU),
    ],
)
def test_gpus_that_only_the_size_tells(adapter, fake, size, model, count, tenancy):
    row = fake.add(fake.row(1))
    row["properties"]["hardwareProfile"]["vmSize"] = size
    machine = only(adapter)
    assert (machine.gpu_model, machine.gpu_count, machine.tenancy) == (model, count, tenancy)


def test_a_key_that_sees_machines_alone_leaves_the_rest_unknown(adapter, fake):
    fake.seed()
    for act in ("sizes", "interfaces"):
        fake.refuse(403, on=act)
    machine = only(adapter)
    assert (machine.vcpus, machine.ssh) == (None, ())


def test_a_subscription_that_is_not_found_is_no_proof_that_a_machine_is_gone(adapter, fake, monkeypatch):
    (ref,) = fake.seed()
    error = {"code": "SubscriptionNotFound", "message": "The subscription could not be found."}
    monkeypatch.setattr(fake, "problem", lambda status, message: told({"error": error}, 404))
    fake.refuse(404)
    with pytest.raises(ScopeMissing):
        adapter.instance(ref)


def test_maintenance_and_failures_are_told(adapter, fake):
    view = fake.add(fake.row(1))["properties"]["instanceView"]
    view["maintenanceRedeployStatus"] = {"maintenanceWindowStartTime": "2026-12-02T09:00:00Z"}
    view["statuses"].append({"code": "ProvisioningState/failed/OSProvisioningTimedOut", "level": "Error"})
    (notice,) = adapter.notices()
    assert (notice.kind, notice.starts_at) == (NoticeKind.MAINTENANCE, datetime(2026, 12, 2, 9, tzinfo=UTC))
    assert only(adapter).state_reason == "ProvisioningState/failed/OSProvisioningTimedOut"


def test_what_is_ordered_leaves_nothing_behind_when_it_goes(adapter, fake):
    adapter.create(fake.order(), TOKEN)
    (asked,) = fake.asked("create")
    told = asked.json["properties"]
    (interface,) = told["networkProfile"]["networkInterfaceConfigurations"]
    (inner,) = interface["properties"]["ipConfigurations"]
    kept = (
        told["storageProfile"]["osDisk"],
        interface["properties"],
        inner["properties"]["publicIPAddressConfiguration"]["properties"],
    )
    assert {each["deleteOption"] for each in kept} == {"Delete"}
    assert asked.path.endswith(f"/train-{TOKEN}")


@pytest.mark.parametrize(("limit", "told"), [(None, -1.0), (Decimal("2.5"), 2.5)])
def test_spot_is_ordered_up_to_its_limit(adapter, fake, limit, told):
    adapter.create(replace(fake.order(), market=Market.SPOT, max_price_per_hour=limit), TOKEN)
    asked = fake.asked("create")[0].json["properties"]
    assert (asked["evictionPolicy"], asked["billingProfile"]) == ("Deallocate", {"maxPrice": told})


def test_a_quota_that_is_used_up_is_no_wrong_state(adapter, fake, monkeypatch):
    error = {"code": "OperationNotAllowed", "message": "Operation results in exceeding approved cores Quota."}
    monkeypatch.setattr(fake, "problem", lambda status, message: told({"error": error}, 409))
    fake.refuse(409, on="create")
    with pytest.raises(QuotaOrFunds, match="Quota"):
        adapter.create(fake.order(), TOKEN)


@pytest.mark.parametrize(
    "change",
    [
        {"ssh_public_key": ""},
        {"image_id": ""},
        {"image_id": "ubuntu"},
        {"region": "westus"},
        {"market": Market.PREPAID},
    ],
)
def test_an_order_that_cannot_be_met_is_refused_before_it_is_sent(adapter, fake, change):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **change), TOKEN)
    assert fake.asked("create") == []


def test_offers_are_sizes_with_gpus_where_one_can_rent(adapter, fake):
    fake.restricted = {"Standard_NC999_B300_v9"}
    offers = list(adapter.offers(OfferQuery()))
    assert [(offer.external_id, offer.market, offer.gpu_count, offer.available) for offer in offers] == [
        (SIZE, Market.ON_DEMAND, 2, None),
        (SIZE, Market.SPOT, 2, None),
        ("Standard_NC999_B300_v9", Market.ON_DEMAND, 4, False),
    ]
    assert list(adapter.offers(OfferQuery(region="westus"))) == []


def test_a_wrong_secret_is_told_in_microsofts_first_line(fake):
    with pytest.raises(AuthFailed, match=r"AADSTS7000215: Invalid client secret provided\.$"):
        Azure({**fake.options, "client_secret": "another-secret"}).verify()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("tenant_id", "contoso.example/../evil", "An id looks like"),
        ("client_id", "", "Fill this in"),
        ("client_secret", " ", "Fill this in"),
        ("subscription_id", "mine", "An id looks like"),
        ("network", "eastus gpu-lab", "Line 1"),
        ("prices", "Standard_NC24ads_A100_v4", "Line 1"),
        ("currency", "$", "three letters"),
    ],
)
def test_an_option_that_cannot_be_used_names_its_field(field, value, says):
    with pytest.raises(InvalidOption, match=says) as refused:
        Azure({**AzureFake.options, field: value})
    assert refused.value.field == field


def test_each_of_microsofts_clouds_has_its_own_door(monkeypatch):
    monkeypatch.setenv("AZURE_ENDPOINT_URL", "https://management.chinacloudapi.cn/")
    assert Azure(AzureFake.options)._arm._door._arguments["base_url"] == "https://login.chinacloudapi.cn"
