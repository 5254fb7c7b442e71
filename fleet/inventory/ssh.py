"""What may stand in an SSH address. People paste it into a shell, so nothing that a shell or ssh reads otherwise gets in."""

from __future__ import annotations

import re
from ipaddress import IPv6Address

USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)


def is_user(text: str) -> bool:
    return USER.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """A name, an IPv4 address, or an IPv6 address without brackets. Never an option: no leading "-"."""
    return HOST.fullmatch(text) is not None or is_ipv6(text)


def is_ipv6(text: str) -> bool:
    # ipaddress takes a zone after "%", which could be anything.
    if "%" in text:
        return False
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
