"""The types with GPUs of each region, at typed prices and at spot's."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.providers.base import Market, Money, OfferQuery, Tenancy

P4D = {
    "InstanceType": "p4d.24xlarge",
    "VCpuInfo": {"DefaultVCpus": 96},
    "MemoryInfo": {"SizeInMiB": 1179648},
    "GpuInfo": {"Gpus": [{"Name": "A100", "Count": 8, "MemoryInfo": {"SizeInMiB": 40960}}]},
    "InstanceStorageInfo": {"TotalSizeInGB": 8000},
    "NetworkInfo": {"NetworkCards": [{"BaselineBandwidthInGbps": 100.0}] * 4},
    "SupportedUsageClasses": ["on-demand", "spot"],
}
G5 = {
    **P4D,
    "InstanceType": "g5.xlarge",
    "GpuInfo": {"Gpus": [{"Name": "A10G", "Count": 1, "MemoryInfo": {"SizeInMiB": 24576}}]},
    "NetworkInfo": {"NetworkCards": [{"NetworkPerformance": "Up to 10 Gigabit"}]},
    "SupportedUsageClasses": ["on-demand"],
}
PLAIN = {key: value for key, value in P4D.items() if key != "GpuInfo"} | {"InstanceType": "p9.none"}


@pytest.fixture
def sold(stub):
    adapter, stubs = stub
    kinds = [("p4d.24xlarge", "us-east-1b"), ("p4d.24xlarge", "us-east-1a"), ("g5.xlarge", "us-east-1a")]
    offerings = [{"InstanceType": kind, "Location": zone} for kind, zone in kinds]
    stubs["ec2"].add_response("describe_instance_type_offerings", {"InstanceTypeOfferings": offerings})
    gone = {**G5, "InstanceType": "g3.sold-nowhere-here"}
    stubs["ec2"].add_response("describe_instance_types", {"InstanceTypes": [P4D, G5, PLAIN, gone]})
    return adapter, stubs["ec2"]


def test_on_demand_has_the_typed_price_or_none(sold):
    adapter, _ = sold
    p4d, g5 = adapter.offers(OfferQuery(market=Market.ON_DEMAND))
    assert (p4d.external_id, p4d.region, p4d.price) == ("p4d.24xlarge", "us-east-1", Money(Decimal("21.96"), "USD"))
    assert (p4d.gpu_model, p4d.gpu_count, p4d.gpu_interconnect) == ("A100 SXM 40 GB", 8, "nvlink")
    assert (p4d.node_network_gbps, p4d.tenancy) == (400.0, Tenancy.DEDICATED_GPU)
    assert p4d.extra == {"zones": ["us-east-1a", "us-east-1b"], "local_disk_gb": 8000}
    assert p4d.storage_price_per_gb_month == Money(Decimal("0.08"), "USD")
    assert (g5.gpu_model, g5.price, g5.node_network_gbps, g5.gpu_interconnect) == ("A10G", None, None, "")


def test_spot_has_the_cheapest_zones_price(sold):
    adapter, ec2 = sold
    rows = [
        {"InstanceType": "p4d.24xlarge", "AvailabilityZone": zone, "ProductDescription": product, "SpotPrice": price}
        | {"Timestamp": "2026-11-30T10:00:00Z"}
        for zone, product, price in (
            ("us-east-1a", "Linux/UNIX", "9.10"),
            ("us-east-1b", "Linux/UNIX (Amazon VPC)", "8.20"),
            ("us-east-1b", "Windows", "1.00"),
        )
    ]
    ec2.add_response("describe_spot_price_history", {"SpotPriceHistory": rows})
    (offer,) = adapter.offers(OfferQuery(market=Market.SPOT))
    assert (offer.market, offer.price) == (Market.SPOT, Money(Decimal("8.20"), "USD"))


def test_a_key_that_may_not_read_spot_prices_still_sees_the_offers(sold):
    adapter, ec2 = sold
    ec2.add_client_error("describe_spot_price_history", "UnauthorizedOperation", "no", 403)
    assert [offer.price for offer in adapter.offers(OfferQuery(market=Market.SPOT))] == [None]


def test_another_region_is_not_asked(stub):
    assert list(stub[0].offers(OfferQuery(region="mars-north-1"))) == []
