"""What the provider calls this machine: from environment variables, firmware, cloud-init or a metadata address."""

from __future__ import annotations

import http.client
import os
import re

from agent.host import files
from agent.host.container import process_environment

_VARIABLES = {
    "RUNPOD_POD_ID": "runpod_pod_id",
    "VAST_CONTAINERLABEL": "vast_instance_id",
    "AutoDLContainerUUID": "autodl_instance_id",
    "SALAD_MACHINE_ID": "salad_machine_id",
    "PAPERSPACE_MACHINE_ID": "paperspace_machine_id",
}
_PLAUSIBLE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$")
_EC2_ID = re.compile(r"^i-[0-9a-f]{8,17}$")
_TIMEOUT_SECONDS = 1.0
_MOST_ANSWER_BYTES = 256


class Metadata:
    """An address that answers with an id on machines whose firmware says ``vendor`` in ``dmi``; never asked elsewhere."""

    __slots__ = ("dmi", "field", "headers", "host", "path", "vendor")

    def __init__(self, field: str, *, dmi: str, vendor: str, host: str, path: str, headers: dict[str, str]) -> None:
        self.field = field
        self.dmi = dmi
        self.vendor = vendor
        self.host = host
        self.path = path
        self.headers = headers


SOURCES = (
    Metadata(
        "gcp_instance_id",
        dmi="product_name",
        vendor="Google Compute Engine",
        host="169.254.169.254",
        path="/computeMetadata/v1/instance/id",
        headers={"Metadata-Flavor": "Google"},
    ),
    Metadata(
        "azure_vm_id",
        dmi="chassis_asset_tag",
        vendor="7783-7084-3265-9085-8269-3286-77",
        host="169.254.169.254",
        path="/metadata/instance/compute/vmId?api-version=2021-02-01&format=text",
        headers={"Metadata": "true"},
    ),
    Metadata(
        "alibaba_instance_id",
        dmi="product_name",
        vendor="Alibaba Cloud ECS",
        host="100.100.100.200",
        path="/latest/meta-data/instance-id",
        headers={},
    ),
    Metadata(
        "tencent_instance_id",
        dmi="product_name",
        vendor="CVM",
        host="169.254.0.23",
        path="/latest/meta-data/instance-id",
        headers={},
    ),
)


def provider_ids(root: str = "/", sources: tuple[Metadata, ...] = SOURCES) -> dict[str, str]:
    """Names as in docs/agent.md; empty on a machine that nobody named."""
    found = {**_from_cloud_init(root), **_from_firmware(root), **_from_environment(root)}
    for source in sources:
        if source.field not in found and _dmi(root, source.dmi) == source.vendor:
            found.update(_asked(source))
    return {name: value for name, value in found.items() if _PLAUSIBLE.match(value)}


def _from_environment(root: str) -> dict[str, str]:
    """Our own variables, and those of the container's first process: a service manager does not hand them on."""
    variables = {**process_environment(root, 1), **os.environ}
    found = {field: variables[name].strip() for name, field in _VARIABLES.items() if variables.get(name)}
    if "vast_instance_id" in found:
        # Vast labels containers "C.<instance>"
        found["vast_instance_id"] = found["vast_instance_id"].rpartition("C.")[2]
    return found


def _from_firmware(root: str) -> dict[str, str]:
    """EC2's hypervisor writes the instance id where every user can read it."""
    tag = _dmi(root, "board_asset_tag")
    return {"aws_instance_id": tag} if _EC2_ID.match(tag) else {}


def _from_cloud_init(root: str) -> dict[str, str]:
    cloud = (files.read_text_or_none(root + "run/cloud-init/cloud-id") or "").strip()
    instance = (files.read_text_or_none(root + "var/lib/cloud/data/instance-id") or "").strip()
    known = cloud and instance and re.match(r"^[a-z][a-z0-9]{1,30}$", cloud) and cloud not in ("nocloud", "none")
    return {f"{cloud}_instance_id": instance} if known else {}


def _dmi(root: str, name: str) -> str:
    return (files.read_text_or_none(f"{root}sys/class/dmi/id/{name}") or "").strip()


def _asked(source: Metadata) -> dict[str, str]:
    connection = http.client.HTTPConnection(source.host, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", source.path, headers=source.headers)
        response = connection.getresponse()
        text = response.read(_MOST_ANSWER_BYTES).decode("ascii", "replace").strip()
    except (OSError, http.client.HTTPException):
        return {}
    finally:
        connection.close()
    return {source.field: text} if response.status == 200 else {}
