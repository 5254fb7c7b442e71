"""`Idempotency-Key`: a write that is sent twice under one key happens once, and is answered the same.

The key's row is written in the transaction of the write itself. A process that dies takes both with it; a second request that comes
meanwhile waits for the first at the row's unique constraint, and then finds its answer. Refusals are not kept: nothing happened then.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import OperationalError, connection, transaction
from django.utils.translation import gettext as _
from psycopg.errors import LockNotAvailable
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.rest.problems import NamedProblem
from fleet.teams.models import APIToken, IdempotentWrite

Handler = Callable[..., Response]
HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEY = re.compile(r"[\x21-\x7e]{1,200}")
KEPT = timedelta(hours=24)
WAIT_SECONDS = 10


def wanted_key(request: Request) -> str | None:
    """Raises ValidationError for a key that cannot be kept."""
    key: str | None = request.headers.get(HEADER)
    if key is None or request.method in SAFE_METHODS:
        return None
    if not KEY.fullmatch(key):
        raise ValidationError({HEADER: _("Give 1 to 200 visible ASCII characters, as in a UUID.")})
    return key


def once(handler: Handler, *, request: Request, key: str) -> Handler:
    """`handler` for this one request, or the answer that its key has already."""
    caller, fingerprint = caller_of(request), fingerprint_of(request)

    def answer(*args: object, **kwargs: object) -> Response:
        with transaction.atomic():
            row, is_new = claim(caller, key, fingerprint)
            if not is_new:
                return replay(row, fingerprint)
            response = handler(*args, **kwargs)
            row.status = response.status_code
            row.body = JSONRenderer().render(response.data).decode() if response.data is not None else ""
            row.save(update_fields=["status", "body"])
            return response

    return answer


def caller_of(request: Request) -> str:
    return f"token:{request.auth.pk}" if isinstance(request.auth, APIToken) else f"user:{request.user.pk}"


def fingerprint_of(request: Request) -> str:
    """Of all that the write says: a key that comes again with something else is a mistake of the caller."""
    body = request._request.body  # noqa: SLF001 - before DRF reads it
    words = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(words + body).hexdigest()


def claim(caller: str, key: str, fingerprint: str) -> tuple[IdempotentWrite, bool]:
    """The key's row, and whether this request made it. Raises a 409 when another one holds it for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
        try:
            found = IdempotentWrite.objects.get_or_create(caller=caller, key=key, defaults={"fingerprint": fingerprint})
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise in_progress() from None
            raise
        cursor.execute("SET LOCAL lock_timeout = DEFAULT")
    return found


def replay(row: IdempotentWrite, fingerprint: str) -> Response:
    if row.fingerprint != fingerprint:
        raise NamedProblem(
            _("This key was used for another write; take a new one for each."),
            code="idempotency_key_reused",
            status_code=status.HTTP_422_UNPROCESSABLE_ENTITY,
            field=HEADER,
        )
    data = json.loads(row.body) if row.body else None
    return Response(data, status=row.status, headers={REPLAYED: "true"})


def in_progress() -> NamedProblem:
    return NamedProblem(
        _("The first request with this key is still being answered; send it again in a moment."),
        code="in_progress",
        status_code=status.HTTP_409_CONFLICT,
        field=HEADER,
    )


def prune_idempotent_writes(*, now: datetime) -> int:
    return IdempotentWrite.objects.filter(created_at__lt=now - KEPT).delete()[0]
