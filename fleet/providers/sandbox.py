"""The sandbox: a provider that this installation runs itself, with machines that do not exist (docs/sandbox.md).

It answers on a loopback port. Only the installation's operator can move it, by environment: SANDBOX_PORT, by default the port above
RACKRENT_PORT.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

import httpx

from fleet.providers.base import (
    AccountInfo,
    Billing,
    Capability,
    Ending,
    Field,
    InstanceState,
    Market,
    Money,
    Part,
    ProviderImage,
    ProviderInstance,
    Ref,
    Ssh,
    StopSemantics,
    Tenancy,
    gettext_noop,
)
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    InvalidOption,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.gpus import canonical
from fleet.providers.redact import cut
from fleet.providers.registry import register

PAGE_SIZE = 50
MAX_PAGES = 1000
TIMEOUT_SECONDS = 10.0
DEFAULT_WEB_PORT = 8400

STATES: Mapping[str, InstanceState] = {
    "provisioning": InstanceState.PROVISIONING,
    "starting": InstanceState.STARTING,
    "running": InstanceState.RUNNING,
    "stopping": InstanceState.STOPPING,
    "stopped": InstanceState.STOPPED,
    "reclaimed": InstanceState.STOPPED,
    "terminating": InstanceState.TERMINATING,
    "terminated": InstanceState.TERMINATED,
}
BILLING: Mapping[str, Billing] = {
    "provisioning": Billing.NONE,
    "starting": Billing.STORAGE,
    "running": Billing.FULL,
    "stopping": Billing.FULL,
    "stopped": Billing.STORAGE,
    "reclaimed": Billing.STORAGE,
    "terminating": Billing.STORAGE,
    "terminated": Billing.NONE,
}
MARKETS: Mapping[str, Market] = {
    "on_demand": Market.ON_DEMAND,
    "spot": Market.SPOT,
    "prepaid": Market.PREPAID,
}
TENANCIES: Mapping[str, Tenancy] = {
    "dedicated_host": Tenancy.DEDICATED_HOST,
    "dedicated_gpu": Tenancy.DEDICATED_GPU,
    "community_host": Tenancy.COMMUNITY_HOST,
    "fraction": Tenancy.FRACTION,
}
ERRORS: Mapping[int, type[ProviderError]] = {
    400: Invalid,
    401: AuthFailed,
    402: QuotaOrFunds,
    403: ScopeMissing,
    404: NotFound,
    409: WrongState,
    422: Invalid,
}


def sandbox_port() -> int:
    """Raises Invalid for a setting that is no port."""
    word = os.environ.get("SANDBOX_PORT", "").strip()
    web = os.environ.get("RACKRENT_PORT", "").strip() or str(DEFAULT_WEB_PORT)
    try:
        port = int(word) if word else int(web) + 1
    except ValueError:
        raise Invalid("SANDBOX_PORT must be a port number.") from None
    if not 0 < port < 65_536:
        raise Invalid("SANDBOX_PORT must be a port number.")
    return port


@register
class Sandbox:
    kind: ClassVar[str] = "sandbox"
    label: ClassVar[str] = gettext_noop("Sandbox")
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="key",
            label=gettext_noop("Key"),
            help_text=gettext_noop("made by the sandbox itself when it first starts"),
            secret=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.LIST, Capability.IMAGES})
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ()
    semantics: ClassVar[StopSemantics] = StopSemantics(
        can_stop=True,
        billed_when_stopped=frozenset({Part.BOOT_DISK}),
        lost_on_stop=frozenset({Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
        lost_on_terminate=frozenset({Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
        source="docs/sandbox.md",
        confirmed=True,
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        key = options["key"]
        if not key or not key.isascii() or not key.isprintable():
            raise InvalidOption("key", gettext_noop("Enter the key that the sandbox made."))
        self._key = key

    def verify(self) -> AccountInfo:
        with self._client() as client:
            answer = read(client, "account")
        return AccountInfo(str(answer.get("id", "")), str(answer.get("currency", "USD")))

    def instances(self) -> Iterator[ProviderInstance]:
        with self._client() as client:
            yield from (instance_of(row) for row in every(client, "instances"))

    def images(self) -> Iterator[ProviderImage]:
        with self._client() as client:
            yield from (image_of(row) for row in every(client, "images"))

    def _client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{sandbox_port()}/v1/",
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=TIMEOUT_SECONDS,
            # A proxy of the surroundings must not see the key.
            trust_env=False,
        )


def every(client: httpx.Client, name: str) -> Iterator[dict[str, Any]]:
    """All rows of all pages. Raises Unavailable when the pages do not end."""
    cursor = ""
    for _ in range(MAX_PAGES):
        page = read(client, name, cursor=cursor, limit=str(PAGE_SIZE))
        rows, following = page.get(name), page.get("next")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Unavailable(f"The sandbox's answer has no list of {name}.")
        yield from rows
        if following is None:
            return
        if not isinstance(following, str) or following <= cursor:
            break
        cursor = following
    raise Unavailable(f"The sandbox's list of {name} does not end.")


def read(client: httpx.Client, path: str, **query: str) -> dict[str, Any]:
    try:
        response = client.get(path, params=query)
        content = response.json() if response.is_success else None
    except httpx.HTTPError as error:
        raise Unavailable(f"The sandbox does not answer ({type(error).__name__}).") from error
    except ValueError:
        raise Unavailable("The sandbox's answer is not JSON.") from None
    if not response.is_success:
        raise refusal(response)
    if not isinstance(content, dict):
        raise Unavailable("The sandbox's answer is no JSON object.")
    return content


def refusal(response: httpx.Response) -> ProviderError:
    code, message = problem(response)
    if response.status_code == 429:
        return RateLimited(message, retry_after(response))
    if code == "no_capacity":
        return NoCapacity(message)
    kind = ERRORS.get(response.status_code)
    return kind(message) if kind else Unavailable(f"The sandbox answered {response.status_code}. {message}".rstrip())


def problem(response: httpx.Response) -> tuple[str, str]:
    """Code and message of an error answer, empty where it is not the sandbox's own."""
    try:
        error = response.json()["error"]
        return cut(error["code"], 40), cut(error["message"], 300)
    except (ValueError, KeyError, TypeError):
        return "", ""


def retry_after(response: httpx.Response) -> float | None:
    try:
        return float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return None


def instance_of(row: dict[str, Any]) -> ProviderInstance:
    """Raises Unavailable for a row that is not what the API promises."""
    try:
        return _instance(row)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation) as error:
        raise Unavailable(
            f"The sandbox lists a machine in a form that is not its own ({type(error).__name__})."
        ) from error


def _instance(row: dict[str, Any]) -> ProviderInstance:
    gpu, image, raw = row["gpu"], row.get("image") or {}, str(row["status"])
    return ProviderInstance(
        ref=Ref(str(row["id"]), str(row["region"])),
        name=str(row["name"]),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=str(row.get("status_reason") or ""),
        billing=BILLING.get(raw, Billing.UNKNOWN),
        market=MARKETS.get(str(row.get("market")), Market.UNKNOWN),
        tenancy=TENANCIES.get(str(row.get("tenancy")), Tenancy.UNKNOWN),
        instance_type=str(row.get("type") or ""),
        gpu_raw=str(gpu["model"]),
        gpu_model=canonical(str(gpu["model"]), memory_mib=gpu.get("memory_mib")),
        gpu_count=gpu.get("count"),
        gpu_memory_mib=gpu.get("memory_mib"),
        host_share=None if row.get("host_share") is None else Decimal(row["host_share"]),
        vcpus=row.get("vcpus"),
        ram_mib=None if row.get("ram_gib") is None else int(row["ram_gib"]) * 1024,
        disk_gb=row.get("disk_gb"),
        rate=money(row, "price_per_hour"),
        storage_rate=money(row, "storage_price_per_hour"),
        ssh=addresses(row.get("ssh")),
        image_id=str(image.get("id", "")),
        image_name=str(image.get("name", "")),
        created_at=moment(row.get("created_at")),
        started_at=moment(row.get("started_at")),
        stopped_at=moment(row.get("stopped_at")),
        expires_at=moment(row.get("lease_ends_at")),
        labels={str(name): str(value) for name, value in (row.get("labels") or {}).items()},
    )


def image_of(row: dict[str, Any]) -> ProviderImage:
    try:
        return ProviderImage(str(row["id"]), str(row["name"]), moment(row.get("created_at")))
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(
            f"The sandbox lists an image in a form that is not its own ({type(error).__name__})."
        ) from error


def money(row: dict[str, Any], name: str) -> Money | None:
    value = row.get(name)
    return None if value is None else Money(Decimal(value), str(row["currency"]))


def addresses(ssh: dict[str, Any] | None) -> tuple[Ssh, ...]:
    return (Ssh(str(ssh["host"]), int(ssh["port"]), str(ssh["user"])),) if ssh else ()


def moment(word: str | None) -> datetime | None:
    """Raises ValueError for a time without a zone: guessing one would move bills."""
    if word is None:
        return None
    value = datetime.fromisoformat(word)
    if value.tzinfo is None:
        raise ValueError(word)
    return value
