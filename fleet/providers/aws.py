"""Amazon EC2: every region that the account names, all pages.

EC2 tells no price but that of spot. What a type costs on demand is typed by the account's admin, or unknown, which is not free.
The endpoint can only be changed by the installation's operator: AWS_ENDPOINT_URL, which boto3 reads itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any, ClassVar

from fleet.providers.aws_acts import launch, save_image, terminate
from fleet.providers.aws_endings import ENDINGS, SEMANTICS
from fleet.providers.aws_errors import provider_errors, say_slow_down
from fleet.providers.aws_facts import Prices, currency_of, image_of
from fleet.providers.aws_offers import offers_of
from fleet.providers.aws_options import price_per_gb_month, regions
from fleet.providers.aws_reads import machine, machines, may, own_images
from fleet.providers.aws_reports import notices_of, usage_of
from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
    Notice,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    ProviderUsage,
    Ref,
    Scope,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import ScopeMissing
from fleet.providers.reading import required
from fleet.providers.registry import register
from fleet.providers.typed import own_region, price_lines

# Nobody may stop or save a machine twice because an answer was lost. A launch has its client token, and a read changes nothing.
ONCE, TWICE = 1, 2
CONNECT_SECONDS, READ_SECONDS = 5.0, 20.0
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
    "ec2:DescribeSpotInstanceRequests": (
        "describe_spot_instance_requests",
        {"MaxResults": 5},
        gettext_noop("reclaims of spot machines are not announced"),
    ),
    "ec2:DescribeInstanceStatus": (
        "describe_instance_status",
        {"MaxResults": 5},
        gettext_noop("maintenance is not announced"),
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
            help_text=gettext_noop(
                "of a user that may read: ec2:Describe*, cloudwatch:ListMetrics and GetMetricData; to rent, stop and end machines, "
                "also ec2:RunInstances, CreateTags, ImportKeyPair, StartInstances, StopInstances, RebootInstances, "
                "TerminateInstances, CancelSpotInstanceRequests and CreateImage"
            ),
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
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.BALANCE, Capability.COSTS}
    # RunInstances has a client token, and the adapter itself asks twice when nobody answers.
    create_is_idempotent: ClassVar[bool] = True
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        self._access_key_id = required(options, "access_key_id")
        self._secret_access_key = required(options, "secret_access_key")
        self._regions = regions(options["regions"])
        currency = currency_of(self._regions[0])
        storage = price_per_gb_month("storage_price", options["storage_price"])
        self._prices = Prices(machines=price_lines(options["prices"], currency), storage=storage)

    def verify(self) -> AccountInfo:
        with self._errors():
            account = self._client("sts", self._regions[0]).get_caller_identity()["Account"]
            ec2 = self._client("ec2", self._regions[0])
            scopes = tuple(
                Scope(name, may(ec2, method, least), without) for name, (method, least, without) in READS.items()
            )
        info = AccountInfo(account, currency_of(self._regions[0]), scopes)
        if LISTS in info.lacks:
            raise ScopeMissing(LISTS)
        return info

    def instances(self) -> Iterator[ProviderInstance]:
        for region in self._regions:
            with self._errors(region):
                rows = machines(self._client("ec2", region), region, self._prices)
            yield from rows

    def instance(self, ref: Ref) -> ProviderInstance | None:
        with self._ec2(ref.region) as ec2:
            return machine(ec2, ref.region, self._prices, ref.external_id)

    def start(self, ref: Ref) -> None:
        with self._ec2(ref.region, attempts=ONCE) as ec2:
            ec2.start_instances(InstanceIds=[ref.external_id])

    def stop(self, ref: Ref) -> None:
        with self._ec2(ref.region, attempts=ONCE) as ec2:
            ec2.stop_instances(InstanceIds=[ref.external_id])

    def terminate(self, ref: Ref) -> None:
        with self._ec2(ref.region, attempts=ONCE) as ec2:
            terminate(ec2, ref.external_id)

    def reboot(self, ref: Ref) -> None:
        with self._ec2(ref.region, attempts=ONCE) as ec2:
            ec2.reboot_instances(InstanceIds=[ref.external_id])

    def create(self, spec: CreateSpec, token: str) -> Ref:
        region = spec.region or self._regions[0]
        with self._ec2(region) as ec2:
            return Ref(launch(ec2, spec, token), region)

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for region in self._regions:
            if query.region in {"", region}:
                with self._ec2(region) as ec2:
                    found = list(offers_of(ec2, region, self._prices, query))
                yield from found

    def images(self) -> Iterator[ProviderImage]:
        for region in self._regions:
            with self._ec2(region) as ec2:
                rows = own_images(ec2)
                yield from [image_of(row, region) for row in rows]

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        with self._ec2(ref.region, attempts=ONCE) as ec2:
            image_id = save_image(ec2, ref.external_id, name)
        return ProviderImage(image_id, name, region=ref.region, state=ImageState.PENDING)

    def notices(self) -> Iterator[Notice]:
        for region in self._regions:
            with self._ec2(region) as ec2:
                found = list(notices_of(ec2, region))
            yield from found

    def metrics(self, refs: Sequence[Ref]) -> Iterator[ProviderUsage]:
        for region in self._regions:
            ids = [ref.external_id for ref in refs if ref.region == region]
            if ids:
                with self._errors(region):
                    found = list(usage_of(self._client("cloudwatch", region), region, ids, datetime.now(UTC)))
                yield from found

    @contextmanager
    def _ec2(self, region: str, *, attempts: int = TWICE) -> Iterator[Any]:
        """A client whose errors are ours."""
        with self._errors(own_region(region, self._regions)):
            yield self._client("ec2", region, attempts)

    def _errors(self, region: str = "") -> AbstractContextManager[None]:
        return provider_errors(region, secrets=(self._secret_access_key,))

    @cached_property
    def _session(self) -> Any:
        import boto3
        import botocore.session

        # At DEBUG it logs answers whole, and EC2 may echo a key in them.
        logging.getLogger("botocore").setLevel(logging.INFO)
        bare = botocore.session.get_session()
        bare.register_component("data_loader", descriptions())
        return boto3.Session(self._access_key_id, self._secret_access_key, botocore_session=bare)

    def _client(self, service: str, region: str, attempts: int = TWICE) -> Any:
        from botocore.config import Config

        patience = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": attempts, "mode": "standard"},
        )
        client = self._session.client(service, region_name=region, config=patience)
        client.meta.events.register("before-parse", say_slow_down)
        return client


@cache
def descriptions() -> Any:
    """Botocore's descriptions of services, parsed once a process: EC2's are megabytes of JSON, and each poll has a session."""
    import botocore.loaders

    return botocore.loaders.create_loader()
