"""Tencent Cloud CVM: every region that the account names, all pages.

The endpoint can only be changed by the installation's operator: TENCENT_ENDPOINT_URL, for example that of the international site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

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
from fleet.providers.errors import NotFound, WrongState
from fleet.providers.reading import required
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised
from fleet.providers.sdk import unless_so
from fleet.providers.tencent_client import LABEL, Cvm
from fleet.providers.tencent_endings import ENDINGS, SEMANTICS
from fleet.providers.tencent_facts import image_of, instance_of, market_of, task_notice, unpaid_notice
from fleet.providers.tencent_offers import launch, offers_of, prices_of
from fleet.providers.typed import currency, own_region, region_names

# Repair tasks that wait for somebody, run, or are planned.
OPEN_TASKS = [1, 2, 4]


@register
class Tencent:
    kind: ClassVar[str] = "tencent"
    label: ClassVar[str] = gettext_noop("Tencent Cloud CVM")
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="secret_id", label=gettext_noop("SecretId")),
        Field(
            name="secret_key",
            label=gettext_noop("SecretKey"),
            help_text=gettext_noop("of a CAM user with QcloudCVMReadOnlyAccess, or QcloudCVMFullAccess to act"),
            secret=True,
        ),
        Field(
            name="regions",
            label=gettext_noop("Regions"),
            help_text=gettext_noop("commas between them; machines elsewhere are not seen"),
            default="ap-guangzhou",
        ),
        Field(
            name="currency",
            label=gettext_noop("Currency"),
            help_text=gettext_noop("in which the site bills: CNY, or USD at the international one"),
            default="CNY",
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.BALANCE,
        Capability.METRICS,
        Capability.COSTS,
    }
    # CVM answers an order with the same client token as it did the first.
    create_is_idempotent: ClassVar[bool] = True
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        self._key = (required(options, "secret_id"), required(options, "secret_key"))
        self._regions = region_names(options["regions"])
        self._currency = currency(options["currency"])

    def verify(self) -> AccountInfo:
        self._cvm(self._regions[0]).read("DescribeInstances", Limit=1)
        return AccountInfo(currency=self._currency)

    def instances(self) -> Iterator[ProviderInstance]:
        for region in self._regions:
            cvm = self._cvm(region)
            with promised(LABEL):
                machines = self._told(cvm, list(cvm.pages("DescribeInstances", "InstanceSet")))
            yield from machines

    def instance(self, ref: Ref) -> ProviderInstance | None:
        cvm = self._cvm(ref.region)
        try:
            with promised(LABEL):
                rows = list(cvm.pages("DescribeInstances", "InstanceSet", InstanceIds=[ref.external_id]))
                machines = self._told(cvm, rows)
        except NotFound:
            return None
        return next(iter(machines), None)

    def start(self, ref: Ref) -> None:
        self._act_unless(ref, "StartInstances", InstanceState.RUNNING, InstanceState.STARTING)

    def stop(self, ref: Ref) -> None:
        """Raises WrongState for a machine that was stopped elsewhere and is charged on: only a start can mend that."""
        how = {"StopType": "SOFT_FIRST", "StoppedMode": "STOP_CHARGING"}
        machine = self._act_unless(ref, "StopInstances", InstanceState.STOPPED, InstanceState.STOPPING, **how)
        if machine and machine.extra["stop_charging_mode"] == "KEEP_CHARGING":
            raise WrongState("It is stopped and charged in full (KEEP_CHARGING). Start it, then stop it again.")

    def terminate(self, ref: Ref) -> None:
        """Into the recycle bin; asked of a machine that is there, it is destroyed at once."""
        try:
            self._cvm(ref.region).act("TerminateInstances", InstanceIds=[ref.external_id])
        except NotFound:
            return

    def reboot(self, ref: Ref) -> None:
        self._cvm(ref.region).act("RebootInstances", InstanceIds=[ref.external_id], StopType="SOFT_FIRST")

    def create(self, spec: CreateSpec, token: str) -> Ref:
        with promised(LABEL):
            return launch(self._cvm(spec.region or self._regions[0]), spec, token)

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for region in self._regions:
            if query.region in {"", region}:
                with promised(LABEL):
                    found = list(offers_of(self._cvm(region), query, self._currency))
                yield from found

    def images(self) -> Iterator[ProviderImage]:
        own = [{"Name": "image-type", "Values": ["PRIVATE_IMAGE"]}]
        for region in self._regions:
            with promised(LABEL):
                rows = self._cvm(region).pages("DescribeImages", "ImageSet", Filters=own)
                found = [image_of(row, region) for row in rows]
            yield from found

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        answer = self._cvm(ref.region).act("CreateImage", InstanceId=ref.external_id, ImageName=name)
        with promised(LABEL):
            return ProviderImage(answer["ImageId"], name, region=ref.region, state=ImageState.PENDING)

    def notices(self) -> Iterator[Notice]:
        for region in self._regions:
            cvm = self._cvm(region)
            with promised(LABEL):
                rows = cvm.pages("DescribeInstances", "InstanceSet")
                found = [notice for row in rows for notice in unpaid_notice(row, region)]
                tasks = cvm.pages("DescribeTaskInfo", "RepairTaskInfoSet", Product="CVM", TaskStatus=OPEN_TASKS)
                found += [task_notice(row, region) for row in tasks]
            yield from found

    def _cvm(self, region: str) -> Cvm:
        return Cvm(*self._key, own_region(region, self._regions))

    def _told(self, cvm: Cvm, rows: list[Row]) -> list[ProviderInstance]:
        prices = prices_of(cvm, ((row.get("InstanceType", ""), market_of(row)) for row in rows), self._currency)
        return [instance_of(row, cvm.region, prices) for row in rows]

    def _act_unless(self, ref: Ref, action: str, *so: InstanceState, **parameters: str) -> ProviderInstance | None:
        cvm = self._cvm(ref.region)
        return unless_so(
            lambda: cvm.act(action, InstanceIds=[ref.external_id], **parameters), lambda: self.instance(ref), *so
        )
