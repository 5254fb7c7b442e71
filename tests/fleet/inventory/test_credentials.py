"""Credentials at rest: unreadable in the database, opened by any present key, rotated to the newest."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from fleet.inventory.credentials import CredentialError, open_sealed, rotate_credentials, seal
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import SECRET

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@pytest.fixture
def old_key(settings):
    settings.CREDENTIAL_KEYS = [OLD]


def test_what_is_sealed_opens_and_cannot_be_read(old_key):
    sealed = seal({"key": SECRET})
    assert SECRET.encode() not in sealed
    assert open_sealed(sealed) == {"key": SECRET}


def test_no_secrets_need_no_key(settings):
    settings.CREDENTIAL_KEYS = []
    assert open_sealed(seal({})) == {}


def test_without_a_key_nothing_is_kept_and_the_error_says_so(settings):
    settings.CREDENTIAL_KEYS = []
    with pytest.raises(CredentialError, match="CREDENTIAL_KEYS is not set"):
        seal({"key": SECRET})


def test_a_key_that_is_no_key_is_named_but_not_shown(settings):
    settings.CREDENTIAL_KEYS = ["not-a-key"]
    with pytest.raises(CredentialError, match="url-safe base64") as error:
        seal({"key": SECRET})
    assert "not-a-key" not in str(error.value)


def test_a_new_first_key_still_opens_what_the_old_one_sealed(old_key, settings):
    sealed = seal({"key": SECRET})
    settings.CREDENTIAL_KEYS = [NEW, OLD]
    assert open_sealed(sealed) == {"key": SECRET}


def test_after_rotation_the_old_key_can_go(old_key, lab, settings):
    settings.CREDENTIAL_KEYS = [NEW, OLD]
    assert rotate_credentials(actor=Actor.system("test")) == 1
    settings.CREDENTIAL_KEYS = [NEW]
    lab.refresh_from_db()
    assert open_sealed(lab.credentials) == {"key": SECRET}
    assert AuditEntry.objects.filter(action="account.rotate_credentials").count() == 1


def test_the_command_says_what_is_missing(old_key, lab, settings, capsys):
    call_command("rotate_credentials")
    assert "1 accounts" in capsys.readouterr().out
    settings.CREDENTIAL_KEYS = [NEW]
    with pytest.raises(CommandError, match="None of CREDENTIAL_KEYS opens"):
        call_command("rotate_credentials")


def test_a_lost_key_fails_the_poll_and_not_the_worker(old_key, lab, settings):
    from fleet.inventory.poll import poll_account
    from tests.fleet.inventory.conftest import NOON

    settings.CREDENTIAL_KEYS = [NEW]
    poll_account(account=lab, now=NOON)
    lab.refresh_from_db()
    assert lab.error_kind == "invalid"
    assert "CREDENTIAL_KEYS" in lab.error_detail
