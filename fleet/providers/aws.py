"""Amazon EC2: every region that the account names, all pages.

EC2 tells no price but that of spot. What a type costs on demand is typed by the account's admin, or unknown, which is not free.
The endpoint can only be changed by the installation's operator: AWS_ENDPOINT_URL, which boto3 reads itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from typing import Any, ClassVar, TypeVar

from fleet.providers.aws_endings import ENDINGS, SEMANTICS
from fleet.providers.aws_errors import lacks_permission, provider_errors
from fleet.providers.aws_facts import Facts, instance_of
from fleet.providers.aws_options import decimal, price_table, regions, required
from fleet.providers.base import (
    AccountInfo,
    Capability,
    Ending,
    Field,
    ProviderImage,
    ProviderInstance,
    Scope,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import ScopeMissing
from fleet.providers.registry import register

T = TypeVar("T")
# EC2's own limits: rows of a page, values of a filter.
PAGE_SIZE = 1000
FILTER_VALUES = 200
# What reading needs, and the smallest question that asks for it; a key without the later ones leaves facts unknown.
LISTS = "ec2:DescribeInstances"
READS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    LISTS: ("describe_instances", {"MaxResults": 5}, gettext_noop("no machine is seen")),
    "ec2:DescribeInstanceTypes": (
        "describe_instance_types",
        {"InstanceTypes": ["m5.large"]},
        gettext_noop("GPUs, vCPUs and memory stay unknown"),
    ),
    "ec2:DescribeVolumes": (
        "describe_volumes",
        {"MaxResults": 5},
        gettext_noop("disk sizes and the cost of stopped machines stay unknown"),
    ),
    "ec2:DescribeImages": ("describe_images", {"Owners": ["self"]}, gettext_noop("images have no names")),
    "ec2:DescribeSpotPriceHistory": (
        "describe_spot_price_history",
        {"InstanceTypes": ["m5.large"], "MaxResults": 5},
        gettext_noop("spot machines have no known price"),
    ),
}


@register
class Aws:
    kind: ClassVar[str] = "aws"
    label: ClassVar[str] = "Amazon EC2"
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="access_key_id", label=gettext_noop("Access key id")),
        Field(
            name="secret_access_key",
            label=gettext_noop("Secret access key"),
            help_text=gettext_noop("of a user that may only read: ec2:Describe*"),
            secret=True,
        ),
        Field(
            name="regions",
            label=gettext_noop("Regions"),
            help_text=gettext_noop("commas between them; machines elsewhere are not seen"),
            default="us-east-1",
        ),
        Field(
            name="prices",
            label=gettext_noop("On-demand prices"),
            help_text=gettext_noop(
                "one a line: type and price per hour, as in “p4d.24xlarge 21.96”; “eu-west-1/p4d.24xlarge 23.90” for one "
                "region. EC2 does not tell them; a type without one counts as unknown. Spot prices are read."
            ),
            required=False,
            multiline=True,
        ),
        Field(
            name="storage_price",
            label=gettext_noop("EBS price"),
            help_text=gettext_noop("for one GB a month, as in 0.08; what a stopped machine costs follows from it"),
            required=False,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.LIST, Capability.IMAGES})
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        self._access_key_id = required(options, "access_key_id")
        self._secret_access_key = required(options, "secret_access_key")
        self._regions = regions(options["regions"])
        self._prices = price_table(options["prices"])
        self._storage_price = decimal("storage_price", options["storage_price"])

    def verify(self) -> AccountInfo:
        with provider_errors():
            account = self._client("sts", self._regions[0]).get_caller_identity()["Account"]
            ec2 = self._client("ec2", self._regions[0])
            scopes = tuple(
                Scope(name, may(ec2, method, least), without) for name, (method, least, without) in READS.items()
            )
        info = AccountInfo(account, "CNY" if self._regions[0].startswith("cn-") else "USD", scopes)
        if LISTS in info.lacks:
            raise ScopeMissing(LISTS)
        return info

    def instances(self) -> Iterator[ProviderInstance]:
        for region in self._regions:
            with provider_errors(region):
                rows = self._read(region)
            yield from rows

    def images(self) -> Iterator[ProviderImage]:
        for region in self._regions:
            with provider_errors(region):
                rows = own_images(self._client("ec2", region))
            yield from (image_of(row, region) for row in rows)

    @cached_property
    def _session(self) -> Any:
        import boto3
        import botocore.session

        bare = botocore.session.get_session()
        bare.register_component("data_loader", descriptions())
        return boto3.Session(self._access_key_id, self._secret_access_key, botocore_session=bare)

    def _client(self, service: str, region: str) -> Any:
        from botocore.config import Config

        patience = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 2, "mode": "standard"})
        return self._session.client(service, region_name=region, config=patience)

    def _read(self, region: str) -> list[ProviderInstance]:
        """Every machine of a region, and the facts that only other calls tell."""
        ec2 = self._client("ec2", region)
        rows = [row for group in every(ec2, "describe_instances", "Reservations") for row in group["Instances"]]
        if not rows:
            return []
        facts = Facts(
            types=optional(lambda: instance_types(ec2, rows), {}),
            volume_gb=optional(lambda: volume_sizes(ec2, rows), {}),
            image_names=optional(lambda: image_names(ec2, rows), {}),
            spot_prices=optional(lambda: spot_prices(ec2, rows), {}),
            prices=self._prices,
            storage_price=self._storage_price,
        )
        return [instance_of(row, region, facts) for row in rows]


@cache
def descriptions() -> Any:
    """Botocore's descriptions of services, parsed once a process: EC2's are megabytes of JSON, and each poll has a session."""
    import botocore.loaders

    return botocore.loaders.create_loader()


def every(ec2: Any, operation: str, key: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    """All rows of all pages."""
    paginator = ec2.get_paginator(operation)
    for page in paginator.paginate(PaginationConfig={"PageSize": PAGE_SIZE}, **arguments):
        yield from page[key]


def every_with(ec2: Any, operation: str, key: str, name: str, values: set[str]) -> Iterator[dict[str, Any]]:
    """Like `every`, of the rows whose `name` is among `values`. A filter, unlike a list of ids, tolerates what is gone."""
    ordered = sorted(values)
    for start in range(0, len(ordered), FILTER_VALUES):
        chunk = {"Name": name, "Values": ordered[start : start + FILTER_VALUES]}
        size = {} if operation != "describe_instance_types" else {"PageSize": 100}
        paginator = ec2.get_paginator(operation)
        for page in paginator.paginate(Filters=[chunk], PaginationConfig=size):
            yield from page[key]


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


def spot_prices(ec2: Any, rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], Decimal]:
    """The price in force, by (type, zone, product). Nothing is asked when no machine is on spot."""
    types = sorted({row["InstanceType"] for row in rows if row.get("InstanceLifecycle") == "spot"})
    if not types:
        return {}
    # A history that starts now begins with the price in force.
    history = every(
        ec2, "describe_spot_price_history", "SpotPriceHistory", InstanceTypes=types, StartTime=datetime.now(UTC)
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


def image_of(row: dict[str, Any], region: str) -> ProviderImage:
    created = row.get("CreationDate")
    return ProviderImage(
        row["ImageId"], row.get("Name", ""), datetime.fromisoformat(created) if created else None, region
    )


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
