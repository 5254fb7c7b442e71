"""The one call that an operation is, as its account's adapter takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.operations.orders import order_of
from fleet.providers.base import Acts, Creates, Provider, Ref, SavesImage


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider named in accepting: the machine that it rents out, or the image that it makes. Empty for the other acts."""

    external_id: str = ""
    region: str = ""


def call(adapter: Provider, operation: Operation) -> Answer:
    """Raises what adapters raise."""
    if operation.kind == OperationKind.LAUNCH:
        made = cast(Creates, adapter).create(order_of(operation), operation.token)
        return Answer(made.external_id, made.region)
    ref = ref_of(operation)
    if operation.kind == OperationKind.SAVE_IMAGE:
        image = cast(SavesImage, adapter).save_image(ref, str(operation.spec["name"]))
        return Answer(image.external_id, image.region)
    getattr(cast(Acts, adapter), operation.kind)(ref)
    return Answer()


def ref_of(operation: Operation) -> Ref:
    """Of the machine that it is about."""
    if operation.instance is None:
        return Ref(operation.result_id, operation.result_region)
    return machine_ref(operation.instance)


def machine_ref(instance: Instance) -> Ref:
    return Ref(instance.external_id, instance.region)


def keeps_token(adapter: Provider) -> bool:
    """Whether the same order may be sent twice and makes one machine."""
    return adapter.create_is_idempotent
