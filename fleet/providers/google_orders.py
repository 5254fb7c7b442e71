"""What Compute Engine sells, and how it is ordered. An offer is named by zone and type: "us-central1-a/a2-highgpu-1g"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fleet.providers.base import CreateSpec, Market, Offer, OfferQuery, Ref, Tenancy
from fleet.providers.errors import Invalid, PartialCreate, ProviderError
from fleet.providers.google_api import LABEL, Compute, refuse_failure
from fleet.providers.google_facts import accelerators_of, gpus_of, region_of, tail
from fleet.providers.orders import chosen_image, name_with_token, no_price_limit
from fleet.providers.reading import await_answer, path_of
from fleet.providers.rows import Row, promised
from fleet.providers.typed import PriceTable

WITH_GPUS = 'name eq "(a2|a3|a4|a4x|g2|g4)-.*"'
MODELS = {Market.ON_DEMAND: "STANDARD", Market.SPOT: "SPOT"}
# An order for which there is no machine fails some seconds after it was accepted.
ORDER_TRIES, ORDER_SECONDS = 5, 2.0
LABEL_CHARACTERS = re.compile(r"[^a-z0-9_-]+")
NVLINK = ("a2-", "a3-", "a4-", "a4x-")


def offers_of(compute: Compute, query: OfferQuery, prices: PriceTable) -> Iterator[Offer]:
    for size in compute.rows_everywhere("machineTypes", filter=WITH_GPUS):
        if not size.get("deprecated"):
            for market in MODELS:
                if query.market in {None, market} and query.region in {"", region_of(size["zone"])}:
                    yield offer_of(size, market, prices)


def offer_of(size: Row, market: Market, prices: PriceTable) -> Offer:
    kind, zone = size["name"], tail(size["zone"])
    gpus = gpus_of(accelerators_of({}, size, kind))
    return Offer(
        external_id=f"{zone}/{kind}",
        instance_type=kind,
        region=region_of(zone),
        market=market,
        tenancy=Tenancy.DEDICATED_GPU,
        price=prices.of(kind, region_of(zone), market),
        **gpus,
        gpu_interconnect="nvlink" if kind.startswith(NVLINK) and gpus["gpu_count"] > 1 else "",
        vcpus=size.get("guestCpus"),
        ram_mib=size.get("memoryMb"),
        disk_kind="ssd",
        extra={"zone": zone, "local_disk_partitions": size.get("bundledLocalSsds", {}).get("partitionCount", 0)},
    )


def launch(compute: Compute, spec: CreateSpec, token: str) -> Ref:
    zone, slash, kind = spec.offer_id.partition("/")
    if not slash or spec.market not in MODELS:
        raise Invalid(f"{LABEL} rents “zone/type”, as in us-central1-a/a2-highgpu-1g, on demand or on spot.")
    no_price_limit(spec, LABEL)
    # The same token is the same order, however often it is sent.
    request_id = uuid5(NAMESPACE_URL, f"rackrent:{token}")
    order = order_of(compute.project, zone, kind, spec, token)
    operation = compute.send("POST", f"{path_of('zones', zone, 'instances')}?requestId={request_id}", order)
    with promised(LABEL):
        ref = Ref(operation["targetId"], zone)
    refuse_failure(last_of(compute, zone, operation, ref))
    return ref


def last_of(compute: Compute, zone: str, operation: Row, ref: Ref) -> Row:
    """The operation as it ended, or as it is after some seconds. Raises PartialCreate where it cannot be read: the order stands."""
    path = path_of("zones", zone, "operations", operation.get("name", ""))

    def ended() -> Row | None:
        read = compute.get(path)
        return read if read.get("status") == "DONE" else None

    try:
        return await_answer(ended, tries=ORDER_TRIES, seconds=ORDER_SECONDS) or operation
    except ProviderError as unread:
        raise PartialCreate(unread.detail, ref) from None


def order_of(project: str, zone: str, kind: str, spec: CreateSpec, token: str) -> dict[str, Any]:
    size = {"diskSizeGb": str(spec.disk_gb)} if spec.disk_gb else {}
    image = chosen_image(spec.image_id, LABEL)
    source = image if "/" in image else f"projects/{project}/global/images/{image}"
    return {
        "name": name_with_token(f"m-{spec.name}", token),
        "machineType": f"zones/{zone}/machineTypes/{kind}",
        "labels": {**{clean(key): clean(value) for key, value in spec.labels.items()}, "rackrent-launch": token},
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": source, **size}}],
        "networkInterfaces": [
            {
                "network": "global/networks/default",
                "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}],
            }
        ],
        "scheduling": scheduling_of(spec.market),
        "metadata": {"items": list(metadata_of(spec))},
    }


def scheduling_of(market: Market) -> dict[str, Any]:
    """Machines with GPUs cannot move to another host; one on spot is kept stopped when it is taken back."""
    common = {"provisioningModel": MODELS[market], "onHostMaintenance": "TERMINATE"}
    if market is Market.SPOT:
        return {**common, "automaticRestart": False, "instanceTerminationAction": "STOP"}
    return {**common, "automaticRestart": True}


def metadata_of(spec: CreateSpec) -> Iterator[dict[str, str]]:
    if spec.user_data:
        yield {"key": "startup-script", "value": spec.user_data}
    if spec.ssh_public_key:
        yield {"key": "ssh-keys", "value": f"rackrent:{spec.ssh_public_key}"}


def clean(text: str) -> str:
    """As Google's labels are: lower case letters, digits, dashes and underscores, 63 at most."""
    return LABEL_CHARACTERS.sub("-", text.lower())[:63]
