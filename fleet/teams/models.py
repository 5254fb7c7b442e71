"""Who works here: people, teams, roles, projects (cost centres), API tokens, and the record of what they changed."""

from __future__ import annotations

import hashlib

from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.validators import MinLengthValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.teams.browsers import browser_name

__all__ = [
    "APIToken",
    "AuditEntry",
    "BrowserSession",
    "ExternalIdentity",
    "IdempotentWrite",
    "Invitation",
    "Membership",
    "Project",
    "Role",
    "Scope",
    "Team",
    "User",
]


class Role(models.TextChoices):
    """What a member may do; each role may do all that the one before it may."""

    VIEWER = "viewer", _("Viewer")
    OPERATOR = "operator", _("Operator")
    ADMIN = "admin", _("Admin")

    @property
    def rank(self) -> int:
        return list(Role).index(self)


class Scope(models.TextChoices):
    """What an API token may do, in the order of the roles it corresponds to."""

    READ = "read", _("Read")
    OPERATE = "operate", _("Operate")
    ADMIN = "admin", _("Admin")

    @property
    def role(self) -> Role:
        return list(Role)[list(Scope).index(self)]


class User(AbstractUser):
    """A person. Times are shown in their time zone, texts in their language ("" follows the browser)."""

    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)
    language = models.CharField(_("language"), max_length=16, blank=True)
    hides_sandbox = models.BooleanField(default=False)

    @property
    def display_name(self) -> str:
        return self.get_full_name() or self.get_username()


class BrowserSession(AbstractBaseSession):
    """A browser. Once somebody signed in with it, it says who, when and from where, so that they can see and end it."""

    user = models.ForeignKey("fleet.User", on_delete=models.CASCADE, null=True, related_name="browser_sessions")
    signed_in_at = models.DateTimeField(null=True)
    ip_address = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=200, blank=True)

    @property
    def public_id(self) -> str:
        """Names the session on a page without giving away its key."""
        return hashlib.sha256(self.session_key.encode()).hexdigest()

    @property
    def browser(self) -> str:
        return browser_name(self.user_agent)

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        from fleet.teams.sessions import SessionStore

        return SessionStore


class ExternalIdentity(models.Model):
    """A person as an OpenID provider knows them: `subject` never changes there, an e-mail address may."""

    user = models.ForeignKey("fleet.User", on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint("issuer", "subject", name="identity_once")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class Team(models.Model):
    """Owns machines, accounts, projects and tokens; nobody outside it learns that they exist."""

    name = models.CharField(_("name"), max_length=80, validators=[MinLengthValidator(2)])
    slug = models.SlugField(_("address"), max_length=60, unique=True)
    currency = models.CharField(_("currency"), max_length=3, default="USD")
    # In which its days begin: money is summed and budgets are reckoned by them.
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    is_sandbox = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    members: models.ManyToManyField[User, Membership] = models.ManyToManyField(
        "fleet.User", through="fleet.Membership", related_name="teams"
    )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey("fleet.User", on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(_("role"), max_length=16, choices=Role)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint("team", "user", name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"

    def can(self, role: Role) -> bool:
        return Role(self.role).rank >= role.rank


class Invitation(models.Model):
    """A link that lets one person join, once. Only the SHA-256 of its secret is stored."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(_("role"), max_length=16, choices=Role)
    email = models.EmailField(_("e-mail"), blank=True)
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.email or self.pk} to {self.team}"


class Project(models.Model):
    """A cost centre: machines, jobs and budgets are attributed to it."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="projects")
    name = models.CharField(_("name"), max_length=80)
    slug = models.SlugField(_("address"), max_length=60)
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint("team", "slug", name="project_slug_once")]

    def __str__(self) -> str:
        return self.name


class APIToken(models.Model):
    """A script's key to one team. The secret is shown once; its SHA-256 and first characters are kept."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(_("name"), max_length=80)
    scope = models.CharField(_("scope"), max_length=16, choices=Scope)
    token_hash = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class IdempotentWrite(models.Model):
    """What a write over the API answered, kept under the key that its caller gave it (see idempotency.py)."""

    caller = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint("caller", "key", name="idempotent_write_once")]

    def __str__(self) -> str:
        return f"{self.key} of {self.caller}"


class AuditEntry(models.Model):
    """One write: who, from where, what, old and new values. A database trigger refuses UPDATE and DELETE."""

    # No constraint on team and actor: the record outlives both, and a cascade would be a DELETE.
    team = models.ForeignKey(
        "fleet.Team", on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    actor = models.ForeignKey(
        "fleet.User", on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    actor_label = models.CharField(max_length=200)
    via = models.CharField(max_length=16)
    ip_address = models.GenericIPAddressField(null=True)
    at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=80)
    target_type = models.CharField(max_length=40, blank=True)
    target_id = models.CharField(max_length=40, blank=True)
    target_label = models.CharField(max_length=200, blank=True)
    old = models.JSONField(default=dict)
    new = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["team", "-at"], name="audit_team_at")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor_label} {self.action}"

    @property
    def changes(self) -> list[tuple[str, object, object]]:
        """(field, old, new) of every field that says something on either side; None where it has no value there."""
        both = ((key, self.old.get(key), self.new.get(key)) for key in {**self.old, **self.new})
        return [(key, old, new) for key, old, new in both if says_something(old) or says_something(new)]


def says_something(value: object) -> bool:
    """False and 0 do."""
    return value is not None and value not in ("", [], {})
