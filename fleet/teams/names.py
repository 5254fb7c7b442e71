"""What a person may be called: names and addresses that sign in belong to one person."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet.teams.errors import Taken
from fleet.teams.models import User


def refuse_taken(*, username: str, email: str, but: User | None = None) -> None:
    """Raises Taken, with the field, where somebody other than `but` has the user name or the address.

    Letters count as the same in either case, as they do for whoever reads a name.
    """
    others = User.objects.exclude(pk=but.pk) if but else User.objects.all()
    if others.filter(username__iexact=username).exists():
        raise Taken(_("This user name is taken. Choose another."), field="username")
    if email and others.filter(email__iexact=email).exists():
        raise Taken(_("Somebody else here uses this address. Write another, or leave it empty."), field="email")
