"""Alibaba Cloud ECS: every region that the account names, all pages.

A key without rights gets an empty list and no error: before we believe that nothing is there, a dry run asks whether it may look.
The endpoint can only be changed by the installation's operator: ALIBABA_ENDPOINT_URL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import ClassVar

from fleet.providers.alibaba_client import LABEL, Ecs
from fleet.providers.alibaba_endings import ENDINGS, SEMANTICS
from fleet.providers.alibaba_facts import event_notice, image_of, instance_of, lock_notices, market_of
from fleet.providers.alibaba_offers import launch, offers_of, prices_of
from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
    InstanceState,
    Notice,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import NotFound, ProviderError, WrongState
from fleet.providers.reading import required
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised, rows_of
from fleet.providers.sdk import unless_so
from fleet.providers.typed import networks, own_region, region_names

PAGE_SIZE = 100
IMAGE_STATES = "Creating,Waiting,Available,UnAvailable,CreateFailed,Deprecated"
ANNOUNCED = ["Scheduled", "Inquiring", "Executing"]


@register
class Alibaba:
    kind: ClassVar[str] = "alibaba"
    label: ClassVar[str] = gettext_noop("Alibaba Cloud ECS")
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="access_key_id", label=gettext_noop("AccessKey id")),
        Field(
            name="access_key_secret",
            label=gettext_noop("AccessKey secret"),
            help_text=gettext_noop("of a RAM user with AliyunECSReadOnlyAccess, or AliyunECSFullAccess to act"),
            secret=True,
        ),
        Field(
            name="regions",
            label=gettext_noop("Regions"),
            help_text=gettext_noop("commas between them; machines elsewhere are not seen"),
            default="cn-hangzhou",
        ),
        Field(
            name="network",
            label=gettext_noop("Where to rent"),
            help_text=gettext_noop(
                "one region a line with vSwitch and security group, as in “cn-hangzhou vsw-bp1a2b3c sg-bp1a2b3c”; only to rent"
            ),
            required=False,
            multiline=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.BALANCE,
        Capability.METRICS,
        Capability.COSTS,
    }
    # ECS answers an order with the same client token as it did the first.
    create_is_idempotent: ClassVar[bool] = True
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        self._key = (required(options, "access_key_id"), required(options, "access_key_secret"))
        self._regions = region_names(options["regions"])
        self._networks = networks(options["network"], self._regions)

    def verify(self) -> AccountInfo:
        self._may_list(self._ecs(self._regions[0]))
        return AccountInfo(currency=self.semantics.currency)

    def instances(self) -> Iterator[ProviderInstance]:
        for region in self._regions:
            ecs = self._ecs(region)
            with promised(LABEL):
                machines = told(ecs, self._rows(ecs))
            yield from machines

    def instance(self, ref: Ref) -> ProviderInstance | None:
        ecs = self._ecs(ref.region)
        with promised(LABEL):
            machines = told(ecs, self._rows(ecs, InstanceIds=json.dumps([ref.external_id])))
        return next(iter(machines), None)

    def start(self, ref: Ref) -> None:
        self._act_unless(ref, "start_instance", InstanceState.RUNNING, InstanceState.STARTING)

    def stop(self, ref: Ref) -> None:
        """Raises WrongState for a machine that was stopped elsewhere and is charged on: only a start can mend that."""
        stopped = (InstanceState.STOPPED, InstanceState.STOPPING)
        machine = self._act_unless(ref, "stop_instance", *stopped, StoppedMode="StopCharging")
        if machine and machine.extra["stopped_mode"] == "KeepCharging":
            raise WrongState("It is stopped and charged in full (KeepCharging). Start it, then stop it again.")

    def terminate(self, ref: Ref) -> None:
        try:
            self._ecs(ref.region).act("delete_instance", InstanceId=ref.external_id, Force=True)
        except NotFound:
            return

    def reboot(self, ref: Ref) -> None:
        self._ecs(ref.region).act("reboot_instance", InstanceId=ref.external_id)

    def create(self, spec: CreateSpec, token: str) -> Ref:
        region = spec.region or self._regions[0]
        return launch(self._ecs(region), spec, token, self._networks.get(region))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for region in self._regions:
            if query.region in {"", region}:
                # One by one: each has a price that is a call of its own, and the caller watches the time.
                with promised(LABEL):
                    yield from offers_of(self._ecs(region), query)

    def images(self) -> Iterator[ProviderImage]:
        for region in self._regions:
            with promised(LABEL):
                found = [image_of(row, region) for row in own_images(self._ecs(region))]
            yield from found

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        answer = self._ecs(ref.region).act(
            "create_image", RegionId=ref.region, InstanceId=ref.external_id, ImageName=name
        )
        with promised(LABEL):
            return ProviderImage(answer["ImageId"], name, region=ref.region, state=ImageState.PENDING)

    def notices(self) -> Iterator[Notice]:
        for region in self._regions:
            ecs = self._ecs(region)
            with promised(LABEL):
                found = [notice for row in self._rows(ecs) for notice in lock_notices(row)]
                found += [event_notice(row, region) for row in events(ecs)]
            yield from found

    def _ecs(self, region: str) -> Ecs:
        return Ecs(*self._key, own_region(region, self._regions))

    def _rows(self, ecs: Ecs, **which: str) -> list[Row]:
        """An empty list is believed of a key that may list."""
        pages = ecs.pages("describe_instances", RegionId=ecs.region, MaxResults=PAGE_SIZE, **which)
        found = [row for page in pages for row in rows_of(page.get("Instances"), "Instance", LABEL)]
        if not found:
            self._may_list(ecs)
        return found

    def _may_list(self, ecs: Ecs) -> None:
        """Raises ScopeMissing or AuthFailed. A dry run that would succeed is answered by an error of that name."""
        try:
            ecs.read("describe_instances", RegionId=ecs.region, DryRun=True)
        except ProviderError as answer:
            if not answer.detail.startswith("DryRunOperation"):
                raise

    def _act_unless(self, ref: Ref, action: str, *so: InstanceState, **parameters: str) -> ProviderInstance | None:
        ecs = self._ecs(ref.region)
        return unless_so(
            lambda: ecs.act(action, InstanceId=ref.external_id, **parameters), lambda: self.instance(ref), *so
        )


def told(ecs: Ecs, rows: list[Row]) -> list[ProviderInstance]:
    prices = prices_of(ecs, ((row.get("InstanceType", ""), market_of(row)) for row in rows))
    return [instance_of(row, prices) for row in rows]


def own_images(ecs: Ecs) -> Iterator[Row]:
    page, seen, total = 0, 0, 1
    while seen < total:
        page += 1
        answer = ecs.read(
            "describe_images",
            RegionId=ecs.region,
            ImageOwnerAlias="self",
            Status=IMAGE_STATES,
            PageSize=PAGE_SIZE,
            PageNumber=page,
        )
        rows = rows_of(answer.get("Images"), "Image", LABEL)
        yield from rows
        seen, total = seen + len(rows), answer["TotalCount"] if rows else seen


def events(ecs: Ecs) -> list[Row]:
    """Maintenance and the like that is announced or under way."""
    cycle = {"RegionId": ecs.region, "InstanceEventCycleStatus": ANNOUNCED, "MaxResults": PAGE_SIZE}
    pages = ecs.pages("describe_instance_history_events", **cycle)
    name = "InstanceSystemEventType"
    return [row for page in pages for row in rows_of(page.get("InstanceSystemEventSet"), name, LABEL)]
