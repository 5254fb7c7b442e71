from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.teams.models import APIToken, AuditEntry, Scope
from fleet.teams.tokens import create_token, find_token, revoke_token


@pytest.fixture
def made(alice, acme, by):
    return create_token(actor=by(alice), team=acme, name="Nightly", scope=Scope.READ)


def test_the_secret_finds_its_token(made):
    token, new = made
    assert find_token(secret=new.secret, now=timezone.now()) == token


def test_the_secret_is_stored_nowhere(made):
    _, new = made
    assert new.secret.startswith("rrk_")
    assert new.secret not in repr(list(APIToken.objects.values())) + repr(list(AuditEntry.objects.values())) + repr(new)


@pytest.mark.parametrize("secret", ["", "rrk_made-up", "rrk_", "\x00"])
def test_any_other_secret_finds_nothing(made, secret):
    assert find_token(secret=secret, now=timezone.now()) is None


def test_a_revoked_token_is_dead_at_once(made, alice, by):
    token, new = made
    assert revoke_token(actor=by(alice), token=token)
    assert not revoke_token(actor=by(alice), token=token)
    assert find_token(secret=new.secret, now=timezone.now()) is None
    assert AuditEntry.objects.filter(action="token.revoke").count() == 1


def test_it_ends_at_its_expiry(alice, acme, by):
    now = timezone.now()
    _, new = create_token(actor=by(alice), team=acme, name="x", scope=Scope.READ, expires_at=now + timedelta(days=30))
    assert find_token(secret=new.secret, now=now + timedelta(days=30, seconds=-1))
    assert find_token(secret=new.secret, now=now + timedelta(days=30)) is None


def test_last_used_is_written_once_a_minute(made, django_assert_num_queries):
    _, new = made
    now = timezone.now()
    find_token(secret=new.secret, now=now)
    with django_assert_num_queries(1):
        find_token(secret=new.secret, now=now + timedelta(seconds=59))
    assert APIToken.objects.get().last_used_at == now
    find_token(secret=new.secret, now=now + timedelta(seconds=60))
    assert APIToken.objects.get().last_used_at == now + timedelta(seconds=60)
