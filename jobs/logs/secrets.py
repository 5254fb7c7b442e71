"""In which forms a secret is looked for in a log: as it is, in base64, and as addresses and JSON write it. Pure.

Not found: a secret that the command takes apart, turns round, encrypts, prints as hexadecimal digits or over several lines, and one of less than six bytes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

# Shorter ones would hide half of a log, and protect nothing.
SHORTEST = 6
# Less of a base64 text than that is found by chance.
SHORTEST_BASE64 = 12
LONGEST = 4096


def hidden(secrets: Iterable[str]) -> re.Pattern[bytes] | None:
    """Finds every form of each line of them, the longest first; None: there is nothing to hide."""
    pieces = {line.strip() for secret in secrets for line in secret.splitlines()}
    forms = {form for piece in pieces if len(piece.encode()) >= SHORTEST for form in _forms(piece[:LONGEST])}
    wanted = sorted(forms, key=len, reverse=True)
    return re.compile(b"|".join(re.escape(form) for form in wanted)) if wanted else None


def _forms(piece: str) -> Iterator[bytes]:
    yield from (form.encode() for form in (piece, quote(piece, safe=""), quote_plus(piece), json.dumps(piece)[1:-1]))
    yield from _base64(piece.encode())


def _base64(data: bytes) -> Iterator[bytes]:
    """Wherever it stands in what was encoded: the letters that only the secret decides, for each of the three places at which it can begin."""
    for shift in range(3):
        padded = bytes(shift) + data
        begin, end = (shift * 8 + 5) // 6, len(padded) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            core = encode(padded)[begin:end]
            if len(core) >= SHORTEST_BASE64:
                yield core
