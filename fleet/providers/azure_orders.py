"""What Azure sells where the account may rent, and how it is ordered."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fleet.providers.azure_api import LABEL, SKUS_VERSION, Arm, NameTaken
from fleet.providers.azure_sizes import NVLINK, gpus_of, tenancy_of
from fleet.providers.base import CreateSpec, Market, Offer, OfferQuery, Ref
from fleet.providers.errors import Invalid
from fleet.providers.orders import chosen_image, limit_on_spot, name_with_token
from fleet.providers.reading import mib, path_of, whole
from fleet.providers.rows import Row
from fleet.providers.typed import PriceTable

USER = "azureuser"
PRIORITIES = {Market.ON_DEMAND: "Regular", Market.SPOT: "Spot"}


def offers_of(arm: Arm, location: str, query: OfferQuery, prices: PriceTable) -> Iterator[Offer]:
    rows = arm.rows("providers/Microsoft.Compute/skus", SKUS_VERSION, **{"$filter": f"location eq '{location}'"})
    for row in rows:
        if row.get("resourceType") != "virtualMachines":
            continue
        told = {each["name"]: each["value"] for each in row.get("capabilities") or ()}
        if whole(told.get("GPUs")) or gpus_of(row["name"])["gpu_count"]:
            yield from (offer_of(row, told, location, market, prices) for market in markets_of(told, query))


def markets_of(told: dict[str, str], query: OfferQuery) -> Iterator[Market]:
    for market in PRIORITIES:
        sold = market is Market.ON_DEMAND or told.get("LowPriorityCapable") == "True"
        if sold and query.market in {None, market}:
            yield market


def offer_of(row: Row, told: dict[str, str], location: str, market: Market, prices: PriceTable) -> Offer:
    size = row["name"]
    gpus = gpus_of(size)
    count = gpus["gpu_count"] or whole(told.get("GPUs"))
    return Offer(
        external_id=size,
        instance_type=size,
        region=location,
        market=market,
        tenancy=tenancy_of(size),
        price=prices.of(size, location, market),
        # Restricted: this subscription may not have it here, whatever is in stock.
        available=False if row.get("restrictions") else None,
        **{**gpus, "gpu_count": count},
        gpu_interconnect="nvlink" if size.lower().startswith(NVLINK) and (count or 0) > 1 else "",
        vcpus=whole(told.get("vCPUs")),
        ram_mib=mib(told.get("MemoryGB")),
        disk_kind="ssd",
    )


def launch(arm: Arm, spec: CreateSpec, token: str, place: tuple[str, tuple[str, str]]) -> Ref:
    """`place`: the location, and there the resource group and the subnet."""
    location, (group, subnet) = place
    name = name_with_token(spec.name, token)
    order = order_of(name, location, subnet, spec, token)
    path = path_of("resourceGroups", group, "providers", "Microsoft.Compute", "virtualMachines", name)
    # Never a change of a machine that has this name already; with its token, that is the machine of this order.
    with suppress(NameTaken):
        arm.send("PUT", path, order, **{"If-None-Match": "*"})
    return Ref(f"{group.lower()}/{name}", location)


def order_of(name: str, location: str, subnet: str, spec: CreateSpec, token: str) -> Row:
    limit_on_spot(spec, LABEL)
    return {
        "location": location,
        "tags": {**spec.labels, "rackrent-launch": token},
        "properties": {
            "hardwareProfile": {"vmSize": spec.offer_id},
            "storageProfile": {"imageReference": image_reference(spec.image_id), "osDisk": os_disk(spec)},
            "osProfile": os_profile(name, spec),
            "networkProfile": {
                "networkApiVersion": "2022-11-01",
                "networkInterfaceConfigurations": [interface(subnet)],
            },
            "priority": PRIORITIES[spec.market],
            **spot_terms(spec),
        },
    }


def image_reference(image_id: str) -> dict[str, str]:
    """Of an image's id, or of Azure's "publisher:offer:sku:version"."""
    image = chosen_image(image_id, LABEL)
    if image.startswith("/"):
        return {"id": image}
    parts = image.split(":")
    if len(parts) != 4:
        raise Invalid(
            "An Azure image is an id, or publisher:offer:sku:version as in Canonical:ubuntu-24_04-lts:server:latest."
        )
    return dict(zip(("publisher", "offer", "sku", "version"), parts, strict=True))


def os_disk(spec: CreateSpec) -> dict[str, Any]:
    size = {"diskSizeGB": spec.disk_gb} if spec.disk_gb else {}
    managed = {"storageAccountType": "Premium_LRS"}
    return {"createOption": "FromImage", "deleteOption": "Delete", "managedDisk": managed, **size}


def os_profile(name: str, spec: CreateSpec) -> dict[str, Any]:
    if not spec.ssh_public_key:
        raise Invalid(f"{LABEL} makes no machine without a key: choose an SSH key.")
    key = {"path": f"/home/{USER}/.ssh/authorized_keys", "keyData": spec.ssh_public_key}
    script = {"customData": base64.b64encode(spec.user_data.encode()).decode()} if spec.user_data else {}
    linux = {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}}
    return {"computerName": name[:64], "adminUsername": USER, "linuxConfiguration": linux, **script}


def interface(subnet: str) -> dict[str, Any]:
    """Made with the machine and deleted with it, its public address too."""
    public = {"name": "public", "properties": {"deleteOption": "Delete"}, "sku": {"name": "Standard"}}
    inner = {"primary": True, "subnet": {"id": subnet}, "publicIPAddressConfiguration": public}
    configurations = [{"name": "main", "properties": inner}]
    return {
        "name": "main",
        "properties": {"primary": True, "deleteOption": "Delete", "ipConfigurations": configurations},
    }


def spot_terms(spec: CreateSpec) -> dict[str, Any]:
    """Taken back, it is kept deallocated. A limit of -1 is Azure's word for "up to the price on demand"."""
    if spec.market is not Market.SPOT:
        return {}
    limit = -1.0 if spec.max_price_per_hour is None else float(spec.max_price_per_hour)
    return {"evictionPolicy": "Deallocate", "billingProfile": {"maxPrice": limit}}
