"""Gives a person a new password; for whoever is locked out."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from axes.utils import reset
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from config.embedded import EmbeddedError
from config.runtime.servers import database_running
from fleet.teams.audit import Actor
from fleet.teams.models import User
from fleet.teams.people import change_password


class Command(BaseCommand):
    help = "Set a new password, generated and printed once, or typed with --ask. Ends the person's sessions and lifts a lock-out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", nargs="?", help="May be left out where there is one person only.")
        parser.add_argument("--ask", action="store_true", help="Type the password instead of having one generated.")

    def handle(self, *args: Any, username: str | None, ask: bool, **options: Any) -> None:
        try:
            with database_running():
                self._set(find(username), getpass("New password: ") if ask else None)
        except EmbeddedError as error:
            raise CommandError(str(error)) from error

    def _set(self, user: User, typed: str | None) -> None:
        password = typed if typed is not None else secrets.token_urlsafe(12)
        try:
            change_password(actor=Actor.system("manage.py password"), user=user, password=password)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        reset(username=user.username)
        shown = "as typed" if typed is not None else password
        self.stdout.write(f"Password of {user.username}: {shown}")


def find(username: str | None) -> User:
    """The person of that name, or the only one there is."""
    people = list(User.objects.filter(is_active=True).order_by("username")[:20])
    if username is None and len(people) == 1:
        return people[0]
    found = User.objects.filter(username=username).first()
    if found is None:
        names = ", ".join(person.username for person in people) or "nobody yet"
        raise CommandError(f"Whose password? Run `manage.py password NAME`. There is: {names}.")
    return found
