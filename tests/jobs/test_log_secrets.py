"""Secrets in logs: hidden in whatever pieces a log is read, and in the forms in which programs print them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from jobs.logs.part import LONGEST_LINE, Part, ready
from jobs.logs.secrets import hidden

SECRET = 'hf_Very/Secret+"9'


def stored(pieces: list[bytes], *, secrets: list[str], visits: int = 1) -> bytes:
    """As visits read it: what is left over is read again."""
    log, kept, offset = b"".join(pieces), b"", 0
    for visit in range(1, visits + 1):
        end = len(log) * visit // visits
        parts, begin = [], offset
        for piece in pieces:
            size = min(len(piece), end - begin)
            if size > 0:
                parts.append(Part(begin, log[begin : begin + size]))
                begin += size
        for part in ready(parts, secrets, is_last=visit == visits):
            assert part.offset == offset
            kept, offset = kept + part.data, offset + len(part.data)
    assert len(kept) == len(log), "offsets stay those of the machine"
    return kept


@pytest.mark.parametrize("visits", [1, 2, 3, 7])
@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_however_the_log_is_cut(cut, visits):
    log = f"first\ntoken={SECRET} end\nlast {SECRET}".encode()
    kept = stored([log[:cut], log[cut:]], secrets=[SECRET], visits=visits)
    assert SECRET.encode() not in kept
    assert kept == log.replace(SECRET.encode(), b"*" * len(SECRET))


@pytest.mark.parametrize("before", range(LONGEST_LINE // 2 - 20, LONGEST_LINE // 2 + 3))
def test_in_a_line_without_end_that_has_to_be_cut(before):
    log = b"x" * (LONGEST_LINE - before) + SECRET.encode() + b"y" * (before + LONGEST_LINE)
    for cut in (len(log) // 2, LONGEST_LINE, LONGEST_LINE + 7):
        kept = stored([log[:cut], log[cut:]], secrets=[SECRET], visits=2)
        assert not [size for size in range(4, len(SECRET)) if SECRET[:size].encode() in kept]
        assert not [size for size in range(4, len(SECRET)) if SECRET[-size:].encode() in kept]


def test_half_of_one_behind_a_gap():
    [part] = ready([Part(100, b'cret+"9 rest\nwhole line\n', 60)], [SECRET], is_last=False)
    assert (part.offset, part.data, part.skipped) == (113, b"whole line\n", 73)


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:", "Bearer "])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_in_base64_wherever_it_stands(before, encode):
    text = encode(f"{before}{SECRET}\n".encode())
    kept = stored([b"Authorization: " + text + b"\n"], secrets=[SECRET])
    shown = base64.urlsafe_b64decode(
        kept.split()[1].replace(b"*", b"A").replace(b"+", b"-").replace(b"/", b"_") + b"=="
    )
    assert SECRET[2:-2].encode() not in shown
    assert kept.count(b"*") >= len(text) * len(SECRET) // (len(SECRET) + len(before) + 1) - 4


@pytest.mark.parametrize("form", [quote(SECRET, safe=""), json.dumps({"token": SECRET}), f"'{SECRET}'", repr(SECRET)])
def test_as_addresses_and_json_write_it(form):
    kept = stored([f"GET {form}\n".encode()], secrets=[SECRET])
    assert b"Secret" not in kept


def test_each_line_of_a_key_and_nothing_short():
    key = "-----BEGIN KEY-----\nAAAABBBBCCCC\n-----END KEY-----\n"
    kept = stored([b"-----BEGIN KEY-----\r\n", b"AAAABBBBCCCC\n on abcde\n"], secrets=[key, "abcde"])
    assert kept == b"*" * 19 + b"\r\n" + b"*" * 12 + b"\n on abcde\n"
    assert hidden(["abcde", ""]) is None
