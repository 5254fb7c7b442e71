"""Whether browsers may still look at a team, asked for many at once: the number of queries does not grow with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from fleet.teams.models import BrowserSession, Membership, Team, User

# The key of a browser's session, and the slug of the team that it looks at.
Look = tuple[str, str]


def teams_still_seen(looks: Collection[Look]) -> dict[Look, Team]:
    """Those whose session lives, whose account is active and whose membership stands; everybody else is left out.

    For connections that outlive a request. A changed password ends them too, as it ends the session.
    """
    users = _users_of_sessions({session_key for session_key, _slug in looks})
    slugs = {slug for _session_key, slug in looks}
    memberships = Membership.objects.filter(user__in=users.values(), team__slug__in=slugs).select_related("team")
    mine = {(membership.user_id, membership.team.slug): membership.team for membership in memberships}
    # The sandbox has no members; everybody may look at it.
    sandboxes = {team.slug: team for team in Team.objects.filter(slug__in=slugs, is_sandbox=True)}
    found: dict[Look, Team] = {}
    for session_key, slug in looks:
        user = users.get(session_key)
        team = (mine.get((user.pk, slug)) or sandboxes.get(slug)) if user else None
        if team is not None:
            found[session_key, slug] = team
    return found


def _users_of_sessions(session_keys: Collection[str]) -> dict[str, User]:
    living = BrowserSession.objects.filter(session_key__in=session_keys, expire_date__gt=timezone.now())
    told = {session.session_key: session.get_decoded() for session in living}
    ids = {int(data[SESSION_KEY]) for data in told.values() if SESSION_KEY in data}
    accounts = User.objects.filter(is_active=True).in_bulk(ids)
    found = {key: _user_of(data, accounts) for key, data in told.items()}
    return {key: user for key, user in found.items() if user is not None}


def _user_of(session: Mapping[str, Any], accounts: Mapping[int, User]) -> User | None:
    """As `django.contrib.auth.get_user` decides it, which asks for one account at a time."""
    user = accounts.get(int(session.get(SESSION_KEY, 0)))
    if user is None or session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    said = session.get(HASH_SESSION_KEY, "")
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return user if any(constant_time_compare(said, own) for own in hashes) else None
