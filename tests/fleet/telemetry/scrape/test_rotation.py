"""Tokens of exporters under new keys."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

from fleet.inventory.credentials import open_sealed, seal
from fleet.telemetry.models import ScrapeTarget

pytestmark = pytest.mark.django_db


def test_after_rotation_the_old_key_can_go(make_instance, settings):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.CREDENTIAL_KEYS = [old]
    target = ScrapeTarget.objects.create(instance=make_instance(), url="http://x/", token=seal({"token": "s3cret"}))
    settings.CREDENTIAL_KEYS = [new, old]
    call_command("rotate_credentials", verbosity=0)
    settings.CREDENTIAL_KEYS = [new]
    target.refresh_from_db()
    assert open_sealed(target.token) == {"token": "s3cret"}
