"""RunPod over its REST API v2: pods, their actions, the catalogue of GPUs, templates as images.

Version 2 has no spot market, no balance and no snapshot of a pod; the listing is one page. `cost` is 0 for stopped pods although their
volume is billed, at twice the price: that part is reckoned here (docs.runpod.io: Billing, Storage types; read November 2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    BilledCharge,
    Capability,
    CreateSpec,
    Ending,
    Field,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    Scope,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import (
    NotFound,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JSON, JsonApi, Problem, endpoint
from fleet.providers.orders import order_refusals
from fleet.providers.reading import complete, header_secret, path_of
from fleet.providers.registry import register
from fleet.providers.rows import promised, rows_of
from fleet.providers.runpod_bills import HISTORIES, History, lines_of
from fleet.providers.runpod_catalogue import CLOUDS, COUNTS, offers_of
from fleet.providers.runpod_endings import ENDINGS, SEMANTICS
from fleet.providers.runpod_pods import GOING, LABEL, STOPPED, instance_of, order_of

PODS = "/v2/pods"


@register
class RunPod:
    kind: ClassVar[str] = "runpod"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="api_key",
            label=gettext_noop("API key"),
            help_text=gettext_noop(
                "made under Settings › API Keys; “Read only” suffices to watch, renting and stopping need all"
            ),
            secret=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.START,
            Capability.STOP,
            Capability.TERMINATE,
            Capability.REBOOT,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.IMAGES,
            Capability.COSTS,
        }
    )
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        key = header_secret(options, "api_key")
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://api.runpod.io"),
            headers={"Authorization": f"Bearer {key}"},
            secrets=[key],
            problem=problem,
        )

    def verify(self) -> AccountInfo:
        """Keys are made for single parts of the API; the account itself has no name there."""
        self._api.get(PODS)
        scopes = (
            Scope("pods", granted=True),
            Scope("templates", self._may("/v2/templates"), gettext_noop("images have no names")),
            Scope("catalog", self._may("/v2/catalog/datacenters"), gettext_noop("no offers are seen")),
        )
        return AccountInfo(scopes=scopes)

    def instances(self) -> Iterator[ProviderInstance]:
        pods = rows_of(self._api.get(PODS, includeClusterPods="true"), "pods", LABEL)
        with promised(LABEL):
            machines = [instance_of(pod) for pod in pods]
        yield from machines

    def instance(self, ref: Ref) -> ProviderInstance | None:
        try:
            pod = self._api.get(path_of_pod(ref))
        except NotFound:
            return None
        with promised(LABEL):
            return instance_of(pod)

    def start(self, ref: Ref) -> None:
        self._act(ref, "start", GOING)

    def stop(self, ref: Ref) -> None:
        self._act(ref, "stop", STOPPED)

    def reboot(self, ref: Ref) -> None:
        self._act(ref, "restart", frozenset())

    def terminate(self, ref: Ref) -> None:
        try:
            self._act(ref, "terminate", frozenset())
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        """The token stands in the pod's name; pods have no labels, so those of the order are kept by Rackrent alone."""
        order = order_of(spec, token)
        # 400 stands for a broken rule and for want of machines: only its prose tells them apart.
        with order_refusals():
            pod = self._api.send("POST", PODS, json=order)
        if not isinstance(pod, dict) or not pod.get("id"):
            raise Unavailable(f"{LABEL} took the order and named no pod.")
        return Ref(str(pod["id"]))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for cloud in CLOUDS:
            for count in (query.gpu_count,) if query.gpu_count else COUNTS:
                answer = self._api.get(
                    "/v2/catalog/gpus", include="AVAILABILITY", product="POD", count=str(count), cloud=cloud
                )
                rows = rows_of(answer, "gpus", LABEL)
                with promised(LABEL):
                    found = [offer for row in rows for offer in offers_of(row, cloud, count)]
                yield from found

    def images(self) -> Iterator[ProviderImage]:
        """The account's templates for pods: a pod's own disk cannot be saved."""
        rows = rows_of(self._api.get("/v2/templates"), "templates", LABEL)
        with promised(LABEL):
            own = [ProviderImage(str(row["id"]), str(row["name"])) for row in rows if not row["serverless"]]
        yield from own

    def charges(self, start: datetime, end: datetime) -> Iterator[BilledCharge]:
        for history in HISTORIES:
            yield from self._history(history, start, end)

    def _history(self, history: History, start: datetime, end: datetime) -> Iterator[BilledCharge]:
        window = {"startTime": in_utc(start), "endTime": in_utc(end), "bucketSize": "day"}
        answer = self._api.get(history.path, **window)
        records = rows_of(answer, "records", LABEL)
        with promised(LABEL):
            complete(len(records), answer["metadata"]["recordCount"], LABEL)
            lines = [line for record in records for line in lines_of(record, history)]
        yield from lines

    def _act(self, ref: Ref, action: str, wanted: frozenset[str]) -> None:
        """Asks for an action; a refusal is none when the pod is in one of the `wanted` states already."""
        try:
            self._api.send("POST", f"{path_of_pod(ref)}/action", json={"action": action})
        except WrongState:
            pod = self._api.get(path_of_pod(ref))
            if not isinstance(pod, dict) or pod.get("status") not in wanted:
                raise

    def _may(self, path: str) -> bool:
        try:
            self._api.get(path)
        except ScopeMissing:
            return False
        return True


def in_utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def path_of_pod(ref: Ref) -> str:
    return f"{PODS}/{path_of(ref.external_id)}"


def problem(body: JSON) -> Problem:
    """RunPod's problem+json: a title, and in `errors` each field that is wrong."""
    detail = "; ".join([str(body["detail"]), *(str(error) for error in body.get("errors") or ())])
    return str(body["title"]), detail
