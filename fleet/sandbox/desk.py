"""The sandbox provider itself: who rents what, kept in a file so that it survives a restart."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fleet.sandbox.cast import IMAGES, OFFERS, Offer
from fleet.sandbox.rentals import Rental, first_rentals

STATE_VERSION = 1
MAX_RENTALS = 200
IMAGE_SECONDS = 60.0


class RefusedError(Exception):
    """What the provider answers instead of doing it: an HTTP status, a code and words."""

    def __init__(self, status: int, code: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after


class StateError(Exception):
    """The kept state cannot be used; the text says what to do."""


@dataclass(frozen=True, slots=True)
class SavedImage:
    id: str
    name: str
    created_at: float

    def status(self, now: float) -> str:
        return "ready" if now - self.created_at >= IMAGE_SECONDS else "pending"


class Desk:
    """Reads and changes rentals. Every answer is as of `clock()`; changes are on disk before the answer is given."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self.path = path
        self.clock = clock
        self.rentals: dict[str, Rental] = {}
        # Idempotency key of a create request -> the machine it made.
        self.created: dict[str, str] = {}
        # Saved from machines, beside those that the sandbox has of its own.
        self.images: dict[str, SavedImage] = {}
        self.full_key = self.read_key = ""
        self.born_at = 0.0
        if path.exists():
            self._load()
        else:
            self._begin()

    def _begin(self) -> None:
        self.born_at = self.clock()
        self.full_key, self.read_key = f"sbk_{secrets.token_urlsafe(24)}", f"sbr_{secrets.token_urlsafe(24)}"
        self.rentals = {rental.id: rental for rental in first_rentals(self.born_at)}
        self._save()

    def _load(self) -> None:
        state = json.loads(self.path.read_text())
        if state.get("version") != STATE_VERSION:
            raise StateError(f"{self.path} is of another release. Move it away; the sandbox begins anew.")
        self.born_at, self.full_key, self.read_key = state["born_at"], state["full_key"], state["read_key"]
        self.rentals = {row["id"]: Rental(**row) for row in state["rentals"]}
        self.created = state["created"]
        self.images = {row["id"]: SavedImage(**row) for row in state.get("images", [])}

    def _save(self) -> None:
        write_private(
            self.path,
            {
                "version": STATE_VERSION,
                "born_at": self.born_at,
                "full_key": self.full_key,
                "read_key": self.read_key,
                "rentals": [asdict(rental) for rental in self.rentals.values()],
                "created": self.created,
                "images": [asdict(image) for image in self.images.values()],
            },
        )

    def refresh(self) -> None:
        """Let time pass for every machine."""
        now = self.clock()
        changed = [rental.advance(now) for rental in self.rentals.values()]
        forgotten = [rental.id for rental in self.rentals.values() if rental.is_forgotten(now)]
        for machine_id in forgotten:
            del self.rentals[machine_id]
        if any(changed) or forgotten:
            self._save()

    def all(self) -> list[Rental]:
        self.refresh()
        return sorted(self.rentals.values(), key=lambda rental: rental.id)

    def get(self, machine_id: str) -> Rental:
        self.refresh()
        try:
            return self.rentals[machine_id]
        except KeyError:
            raise RefusedError(404, "not_found", f"There is no machine {machine_id}.") from None

    def image_names(self) -> dict[str, str]:
        """Of every image that a machine can start from, or runs."""
        return IMAGES | {image.id: image.name for image in self.images.values()}

    def save_image(self, machine_id: str, request: Mapping[str, Any]) -> SavedImage:
        rental = self.get(machine_id)
        if rental.status not in {"running", "stopped"}:
            raise RefusedError(
                409, "wrong_state", f"{rental.name} is {rental.status}; an image needs it running or stopped."
            )
        image_id = f"img-{secrets.token_hex(4)}"
        image = SavedImage(image_id, _text(request, "name", rental.name), self.clock())
        self.images[image.id] = image
        self._save()
        return image

    def change(self, machine_id: str, act: Callable[[Rental, float], None]) -> Rental:
        """Apply Rental.start, .stop, .reboot or .terminate. Raises WrongStateError."""
        rental = self.get(machine_id)
        act(rental, self.clock())
        self._save()
        return rental

    def create(self, request: Mapping[str, Any], idempotency_key: str) -> Rental:
        """A new machine; the same key again gives the same machine."""
        if idempotency_key and idempotency_key in self.created:
            return self.get(self.created[idempotency_key])
        rental = self._new_rental(request)
        self.rentals[rental.id] = rental
        if idempotency_key:
            self.created[idempotency_key] = rental.id
        self._save()
        return rental

    def _ready_images(self) -> list[str]:
        now = self.clock()
        return [image.id for image in self.images.values() if image.status(now) == "ready"]

    def _new_rental(self, request: Mapping[str, Any]) -> Rental:
        offer = _offer(request)
        if len(self.rentals) >= MAX_RENTALS:
            raise RefusedError(402, "quota", f"The sandbox rents {MAX_RENTALS} machines at most. Terminate one first.")
        now = self.clock()
        machine_id = f"sb-{secrets.token_hex(3)}"
        return Rental(
            id=machine_id,
            name=_text(request, "name", machine_id),
            offer=offer.name,
            region=_one_of(request, "region", offer.regions),
            market=_market(request, offer),
            image=_one_of(request, "image", (*IMAGES, *self._ready_images())),
            disk_gb=_disk(request),
            status="provisioning",
            status_since=now,
            created_at=now,
            labels=_labels(request),
        )


def write_private(path: Path, content: object) -> None:
    """Replaces the file whole, readable by its owner only: a crash leaves the old one or the new one."""
    draft = path.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _invalid(field: str, message: str) -> RefusedError:
    return RefusedError(422, "invalid", f"{field}: {message}")


def _offer(request: Mapping[str, Any]) -> Offer:
    name = request.get("offer")
    if name not in OFFERS:
        raise _invalid("offer", f"must be one of {', '.join(OFFERS)}.")
    return OFFERS[name]


def _one_of(request: Mapping[str, Any], field: str, values: tuple[str, ...]) -> str:
    value = request.get(field, values[0])
    if value not in values:
        raise _invalid(field, f"must be one of {', '.join(values)}.")
    return str(value)


def _market(request: Mapping[str, Any], offer: Offer) -> str:
    market = _one_of(request, "market", ("on_demand", "spot", "prepaid"))
    if offer.price_per_hour(market) is None:
        raise RefusedError(409, "no_capacity", f"{offer.name} is not sold on the {market} market.")
    return market


def _text(request: Mapping[str, Any], field: str, default: str) -> str:
    value = request.get(field, default)
    if not isinstance(value, str) or not 1 <= len(value) <= 80:
        raise _invalid(field, "must be a text of 1 to 80 characters.")
    return value


def _disk(request: Mapping[str, Any]) -> int:
    value = request.get("disk_gb", 100)
    if not isinstance(value, int) or isinstance(value, bool) or not 10 <= value <= 20_000:
        raise _invalid("disk_gb", "must be a whole number from 10 to 20000.")
    return value


def _labels(request: Mapping[str, Any]) -> dict[str, str]:
    value = request.get("labels", {})
    if not isinstance(value, dict) or len(value) > 20:
        raise _invalid("labels", "must be an object of at most 20 texts.")
    return {str(key)[:80]: str(text)[:200] for key, text in value.items()}
