"""What an order to rent carries beside its size, in the ways that APIs have for it: the token it is found again by, labels, names, keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

from fleet.providers.base import CreateSpec, Market
from fleet.providers.errors import Invalid, NoCapacity, QuotaOrFunds, WrongState
from fleet.providers.rows import Row

# What a launch is found again by, wherever a provider shows it.
TOKEN = re.compile(r"rr-[0-9a-f]{16}")
# How providers that have no code for it say that nothing is free.
SOLD_OUT = re.compile(
    r"out.of.stock|sold.out|no.capacity|not enough (?:gpu|stock|capacity|resources)|insufficient (?:gpu|stock|capacity|resources)"
    r"|currently unavailable|not available in|no longer any|could not be placed|库存不足|资源不足|GPU不足|暂无空闲|无空闲",
    re.IGNORECASE,
)
TAG_CHARACTERS = re.compile(r"[^A-Za-z0-9:_-]+")


@contextmanager
def order_refusals() -> Iterator[None]:
    """Raises NoCapacity for a refusal that says in words what the provider has no code for.

    A server in trouble refuses nothing, whatever it says: the order may have been taken.
    """
    try:
        yield
    except (Invalid, WrongState, QuotaOrFunds) as refused:
        if SOLD_OUT.search(refused.detail):
            raise NoCapacity(refused.detail) from None
        raise


def labels_of(tags: Iterable[object]) -> dict[str, str]:
    """{"team": "ml", "gpu": ""} from a flat list of tags, "team:ml" and "gpu"."""
    pairs = (str(tag).partition(":") for tag in tags)
    return {name: value for name, _, value in pairs}


def tags_of(labels: Mapping[str, str], token: str) -> list[str]:
    """A flat list for APIs that know no values; letters, digits, colons, dashes and underscores are what all of them take."""
    flat = [f"{name}:{value}" if value else name for name, value in sorted(labels.items())]
    return [f"rackrent:{token}", *(TAG_CHARACTERS.sub("-", tag)[:200] for tag in flat)]


def client_token(*texts: object) -> dict[str, str]:
    """{"client_token": …} for `extra`, from whichever text holds the token of a launch."""
    found = TOKEN.search("\n".join(str(text) for text in texts if text))
    return {"client_token": found[0]} if found else {}


def plain_name(name: str, *, limit: int = 63) -> str:
    """`name` as a host name can be: lower case letters, digits and dashes; "" where nothing is left."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:limit].strip("-")


def name_with_token(name: str, token: str, *, limit: int = 63) -> str:
    """A host name that ends with the token: where an API has no label, a launch is found again by this."""
    clean = plain_name(name, limit=limit - len(token) - 1)
    return f"{clean}-{token}" if clean else token


def chosen_image(image_id: str, label: str) -> str:
    """Raises Invalid where none was chosen: no name of an image would stay right for long."""
    if not image_id:
        raise Invalid(f"{label} needs an image to start from. Choose one.")
    return image_id


def no_price_limit(spec: CreateSpec, label: str) -> None:
    """Raises Invalid for a limit that nothing would hold."""
    if spec.max_price_per_hour is not None:
        raise Invalid(f"{label} takes no limit of price. Leave it empty.")


def own_disk(spec: CreateSpec, label: str) -> None:
    """Raises Invalid for a wish that would be dropped: where each size has its disk, none can be chosen."""
    if spec.disk_gb is not None:
        raise Invalid(f"{label} rents each size with the disk that it has. Leave the disk's size empty.")


def limit_on_spot(spec: CreateSpec, label: str) -> None:
    """Raises Invalid for other markets than on demand and spot, and for a limit of price where only spot has one."""
    if spec.market not in {Market.ON_DEMAND, Market.SPOT}:
        raise Invalid(f"{label} is asked for machines on demand or on spot; terms are bought in its console.")
    if spec.market is Market.ON_DEMAND and spec.max_price_per_hour is not None:
        raise Invalid(f"{label} takes a limit of price on spot only. Leave it empty.")


def on_demand(spec: CreateSpec, label: str) -> None:
    """Raises Invalid for another market than the only one."""
    if spec.market is not Market.ON_DEMAND:
        raise Invalid(f"{label} rents on demand only.")


def known_key(rows: Iterable[Row], field: str, public_key: str) -> Row | None:
    """The row of the same key, whatever its comment."""
    wanted = public_key.split()[:2]
    return next((row for row in rows if str(row.get(field, "")).split()[:2] == wanted), None)


def key_name(public_key: str, *, separator: str = "-") -> str:
    """What a provider's copy of a key is called, after what it holds: the same key is stored once."""
    return f"rackrent{separator}{sha256(public_key.strip().encode()).hexdigest()[:16]}"
