"""EC2's calls that only read, each complete: all pages, and chunks where a filter takes so many values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from fleet.providers.aws_errors import NO_INSTANCE, code_of, lacks_permission
from fleet.providers.aws_facts import Facts, Prices, instance_of
from fleet.providers.base import ProviderInstance

T = TypeVar("T")
# EC2's own limits: rows of a page, values of a filter.
PAGE_SIZE = 1000
PAGE_SIZES = {"describe_instance_types": 100, "list_metrics": None, "get_metric_data": None}
FILTER_VALUES = 200


def machines(ec2: Any, region: str, prices: Prices) -> list[ProviderInstance]:
    return told(ec2, region, prices, rows_of(every(ec2, "describe_instances", "Reservations")))


def machine(ec2: Any, region: str, prices: Prices, instance_id: str) -> ProviderInstance | None:
    row = row_of(ec2, instance_id)
    return told(ec2, region, prices, [row])[0] if row else None


def row_of(ec2: Any, instance_id: str) -> dict[str, Any] | None:
    """None: EC2 says that there is no such machine."""
    from botocore.exceptions import ClientError

    try:
        answer = ec2.describe_instances(InstanceIds=[instance_id])
    except ClientError as error:
        if code_of(error) == NO_INSTANCE:
            return None
        raise
    return next(iter(rows_of(answer["Reservations"])), None)


def rows_of(reservations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for group in reservations for row in group["Instances"]]


def told(ec2: Any, region: str, prices: Prices, rows: list[dict[str, Any]]) -> list[ProviderInstance]:
    """The machines of rows, with the facts that only other calls tell."""
    if not rows:
        return []
    facts = Facts(
        types=optional(lambda: instance_types(ec2, rows), {}),
        volume_gb=optional(lambda: volume_sizes(ec2, rows), {}),
        image_names=optional(lambda: image_names(ec2, rows), {}),
        spot_prices=optional(lambda: spot_prices(ec2, spot_types(rows)), {}),
        spot_requests=optional(lambda: spot_requests(ec2, rows), {}),
        prices=prices,
    )
    return [instance_of(row, region, facts) for row in rows]


def every(client: Any, operation: str, key: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    """All rows of all pages."""
    size = PAGE_SIZES.get(operation, PAGE_SIZE)
    for page in client.get_paginator(operation).paginate(
        PaginationConfig={"PageSize": size} if size else {}, **arguments
    ):
        yield from page[key]


def every_with(ec2: Any, operation: str, key: str, name: str, values: set[str]) -> Iterator[dict[str, Any]]:
    """Like `every`, of the rows whose `name` is among `values`. A filter, unlike a list of ids, tolerates what is gone."""
    ordered = sorted(values)
    for start in range(0, len(ordered), FILTER_VALUES):
        chunk = {"Name": name, "Values": ordered[start : start + FILTER_VALUES]}
        yield from every(ec2, operation, key, Filters=[chunk])


def instance_types(ec2: Any, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    names = {row["InstanceType"] for row in rows}
    found = every_with(ec2, "describe_instance_types", "InstanceTypes", "instance-type", names)
    return {row["InstanceType"]: row for row in found}


def volume_sizes(ec2: Any, rows: list[dict[str, Any]]) -> dict[str, int]:
    """GB of all volumes attached to a machine, by its id."""
    ids = {row["InstanceId"] for row in rows}
    sizes = dict.fromkeys(ids, 0)
    for volume in every_with(ec2, "describe_volumes", "Volumes", "attachment.instance-id", ids):
        for attachment in volume["Attachments"]:
            if attachment["InstanceId"] in ids:
                sizes[attachment["InstanceId"]] += volume["Size"]
    return sizes


def own_images(ec2: Any) -> list[dict[str, Any]]:
    return list(every(ec2, "describe_images", "Images", Owners=["self"]))


def image_names(ec2: Any, rows: list[dict[str, Any]]) -> dict[str, str]:
    ids = {row["ImageId"] for row in rows if row.get("ImageId")}
    found = every_with(ec2, "describe_images", "Images", "image-id", ids)
    return {row["ImageId"]: row.get("Name", "") for row in found}


def spot_types(rows: list[dict[str, Any]]) -> set[str]:
    return {row["InstanceType"] for row in rows if row.get("InstanceLifecycle") == "spot"}


def spot_requests(ec2: Any, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Whether a request is "one-time" or "persistent", by its id."""
    ids = {row["SpotInstanceRequestId"] for row in rows if row.get("SpotInstanceRequestId")}
    found = every_with(ec2, "describe_spot_instance_requests", "SpotInstanceRequests", "spot-instance-request-id", ids)
    return {row["SpotInstanceRequestId"]: row["Type"] for row in found}


def spot_prices(ec2: Any, types: set[str]) -> dict[tuple[str, str, str], Decimal]:
    """The price in force, by (type, zone, product)."""
    if not types:
        return {}
    # A history that starts now begins with the price in force.
    history = every(
        ec2, "describe_spot_price_history", "SpotPriceHistory", InstanceTypes=sorted(types), StartTime=datetime.now(UTC)
    )
    newest: dict[tuple[str, str, str], tuple[datetime, Decimal]] = {}
    for row in history:
        product = row["ProductDescription"].removesuffix(" (Amazon VPC)")
        key, price = (
            (row["InstanceType"], row["AvailabilityZone"], product),
            (row["Timestamp"], Decimal(row["SpotPrice"])),
        )
        newest[key] = max(newest.get(key, price), price)
    return {key: price for key, (_, price) in newest.items()}


def optional(read: Callable[[], T], without: T) -> T:
    """`without` when the key may not read it: the facts stay unknown, and `verify` says which permission would tell them."""
    from botocore.exceptions import ClientError

    try:
        return read()
    except ClientError as error:
        if lacks_permission(error):
            return without
        raise


def may(ec2: Any, method: str, arguments: dict[str, Any]) -> bool:
    """Whether the key may make a call. A dry run answers with an error either way; DryRunOperation means yes."""
    from botocore.exceptions import ClientError

    try:
        getattr(ec2, method)(DryRun=True, **arguments)
    except ClientError as error:
        if lacks_permission(error):
            return False
        if error.response["Error"]["Code"] != "DryRunOperation":
            raise
    return True
