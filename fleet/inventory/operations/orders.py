"""What is ordered at a launch. Its startup script holds secrets (the agent's token, whatever a person typed): sealed until it is not needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from fleet.inventory.credentials import CredentialError, open_sealed, seal
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import Unsealable
from fleet.providers.base import CreateSpec
from fleet.providers.redact import MASK, redact
from fleet.providers.values import Market
from fleet.teams.audit import Actor, record

SCRIPT = "user_data"
# Shorter ones are the shell's own, and no secrets.
WORDS = re.compile(r"[\w.+/-]{8,}")
ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{60,}")
# Written together with every end of a launch, and once its machine is known: from then on it is never sent again.
FORGOTTEN: Mapping[str, bytes] = {"sealed": b""}


def kept(spec: CreateSpec) -> tuple[dict[str, Any], bytes]:
    """What may be read by whoever reads the database, and the rest, sealed. Raises Unsealable without a key to seal with."""
    order = asdict(spec)
    script = order.pop(SCRIPT)
    try:
        return order, seal({SCRIPT: script} if script else {})
    except CredentialError as error:
        raise Unsealable(gettext(str(error))) from None


def order_of(operation: Operation) -> CreateSpec:
    """As it was ordered. Raises CredentialError where the script cannot be opened."""
    order = operation.spec["create"]
    price = order.get("max_price_per_hour")
    values = {
        **order,
        **open_sealed(operation.sealed),
        "market": Market(order["market"]),
        "max_price_per_hour": None if price is None else Decimal(str(price)),
    }
    return CreateSpec(**values)


def without_script(operation: Operation, text: str) -> str:
    """Providers repeat what they refuse: `text` without the words of the script, and without what may be it encoded."""
    try:
        script = open_sealed(operation.sealed).get(SCRIPT, "")
    except CredentialError:
        # It was not sent either.
        return text
    return ENCODED.sub(MASK, redact(text, WORDS.findall(script))) if script else text


def rotate_orders(*, actor: Actor) -> int:
    """Encrypts what launches under way keep sealed with the first of CREDENTIAL_KEYS. Returns how many changed. Raises CredentialError."""
    rotated = 0
    for operation in Operation.objects.exclude(sealed=b"").select_related("team").order_by("pk"):
        sealed = bytes(operation.sealed)
        renewed = seal(open_sealed(sealed))
        with transaction.atomic():
            # It may have been forgotten meanwhile, and stays so.
            if Operation.objects.filter(pk=operation.pk, sealed=sealed).update(sealed=renewed):
                record(actor=actor, team=operation.team, action="operation.rotate_order", target=operation)
                rotated += 1
    return rotated
