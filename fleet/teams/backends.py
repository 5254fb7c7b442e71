from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from fleet.teams.models import User


class EmailBackend(ModelBackend):
    """Signs in by e-mail address, where exactly one person has it."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if not username or "@" not in username or password is None:
            return None
        found = list(User.objects.filter(email__iexact=username)[:2])
        if len(found) != 1:
            # As slow as a right address, so that the time does not tell who has an account.
            User().set_password(password)
            return None
        user = found[0]
        return user if user.check_password(password) and self.user_can_authenticate(user) else None
