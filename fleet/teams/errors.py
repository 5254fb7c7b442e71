"""What a use-case of this slice may refuse. The message is for the person who asked, in their language.

TeamsError
├── LastAdmin
├── NoAccount
├── Taken
└── InvitationUnusable
"""

from __future__ import annotations

from django.utils.functional import Promise


class TeamsError(Exception):
    """`field` names the form field that the refusal is about, where it is about one."""

    def __init__(self, message: str | Promise, field: str | None = None) -> None:
        super().__init__(str(message))
        self.field = field


class LastAdmin(TeamsError):
    """A team without an admin could not be managed by anybody."""


class NoAccount(TeamsError):
    """Whoever signs in from elsewhere has no account here, and none may be made."""


class Taken(TeamsError):
    """The name or address belongs to something else already."""


class InvitationUnusable(TeamsError):
    """The invitation is unknown, used, withdrawn or too old; which of these, a stranger is not told."""
