"""Whether machines that are rented elsewhere could reach the dashboard: their agents call it, nothing calls them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Names that no public resolver knows: RFC 6762 (.local), RFC 8375 (home.arpa), RFC 9476 (.alt), RFC 6761 (.test), and ICANN's .internal.
LOCAL_SUFFIXES = (".local", ".localhost", ".internal", ".home.arpa", ".lan", ".test", ".alt", ".invalid")
# RFC 6598: behind a carrier's address translation, and what overlay networks such as Tailscale hand out.
SHARED_ADDRESS_SPACE = ipaddress.ip_network("100.64.0.0/10")


@dataclass(frozen=True)
class ReachProblem:
    """Why a rented machine cannot reach the dashboard, or may not, and what to do; `certain` is False for "may not"."""

    code: str
    reason: Promise
    remedy: Promise
    certain: bool = True


SET_PUBLIC_URL = _(
    "Set PUBLIC_URL to the address under which the internet reaches this dashboard, for example https://rackrent.example.org, "
    "put a reverse proxy with a certificate in front of it, and start again."
)

UNSET = ReachProblem(
    "unset", _("PUBLIC_URL is not set, so rented machines do not know where to report."), SET_PUBLIC_URL
)
MALFORMED = ReachProblem("malformed", _("PUBLIC_URL is not an http:// or https:// address."), SET_PUBLIC_URL)
LOOPBACK = ReachProblem("loopback", _("PUBLIC_URL leads every machine back to itself."), SET_PUBLIC_URL)
LINK_LOCAL = ReachProblem(
    "link_local", _("PUBLIC_URL is an address that is valid on one network cable only."), SET_PUBLIC_URL
)
PRIVATE = ReachProblem(
    "private",
    _("PUBLIC_URL is a private address: only machines in the same network reach it."),
    _("Join rented machines to that network (a VPN), or set PUBLIC_URL to a public address."),
    certain=False,
)
LOCAL_NAME = ReachProblem(
    "local_name",
    _("PUBLIC_URL is a name that only your own network knows."),
    _("Use a name that public DNS knows, or join rented machines to that network (a VPN)."),
    certain=False,
)
NOT_ENCRYPTED = ReachProblem(
    "not_encrypted",
    _(
        "PUBLIC_URL is plain http://: agents and people send their tokens and passwords readable to the networks between."
    ),
    _("Put a reverse proxy with a certificate in front, set BEHIND_PROXY=1, and begin PUBLIC_URL with https://."),
    certain=False,
)


def reach_problem(public_url: str) -> ReachProblem | None:
    """What keeps rented machines from reaching `public_url`; None when nothing about the address does.

    Only the address is judged: no name is looked up and nothing is called.
    """
    if not public_url:
        return UNSET
    try:
        parts = urlsplit(public_url)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        return MALFORMED
    if parts.scheme not in {"http", "https"} or not host:
        return MALFORMED
    return _host_problem(host) or (NOT_ENCRYPTED if parts.scheme == "http" else None)


def _host_problem(host: str) -> ReachProblem | None:
    try:
        return _address_problem(ipaddress.ip_address(host))
    except ValueError:
        return _name_problem(host)


def _address_problem(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ReachProblem | None:
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped:
        return _address_problem(mapped)
    if address.is_loopback or address.is_unspecified:
        return LOOPBACK
    if address.is_link_local:
        return LINK_LOCAL
    if not address.is_global or (address.version == 4 and address in SHARED_ADDRESS_SPACE):
        return PRIVATE
    return None


def _name_problem(host: str) -> ReachProblem | None:
    if host == "localhost":
        return LOOPBACK
    if "." not in host or host.endswith(LOCAL_SUFFIXES):
        return LOCAL_NAME
    return None
