"""Tokens that people and programs carry. Only their SHA-256 is stored: they are long and random, so a slow hash would add nothing."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NewToken:
    """`secret` is shown once; `hash` and `prefix` (its first characters, to tell tokens apart) are kept."""

    secret: str = field(repr=False)
    hash: str
    prefix: str


def new_token(kind: str) -> NewToken:
    """kind: the letters before the underscore: `rrk` (API), `rri` (invitation), `rre` (enrolment), `rra` (agent)."""
    secret = f"{kind}_{secrets.token_urlsafe(32)}"
    return NewToken(secret, hash_token(secret), secret[:10])


def hash_token(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
