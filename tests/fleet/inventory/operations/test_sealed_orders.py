"""The startup script of a launch: unreadable in the database while it is needed, and gone afterwards."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection

from fleet.inventory.operations.closing import abandon_operation
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.orders import order_of
from fleet.inventory.operations.refusals import Unsealable
from fleet.inventory.operations.requests import request_launch
from fleet.providers.base import CreateSpec
from fleet.providers.errors import Invalid
from tests.fleet.inventory.operations.liar import Liar

SCRIPT = "export HF_TOKEN=hf_very_secret"
SPEC = CreateSpec(name="train-02", offer_id="h100x8", user_data=SCRIPT)


@pytest.fixture
def launch(rented, by_alice) -> Operation:
    return request_launch(actor=by_alice, account=rented, spec=SPEC, offer={})


@pytest.fixture
def sent(monkeypatch) -> list[str]:
    """The scripts that the provider was given."""
    scripts: list[str] = []
    create = Liar.create

    def noted(self: Liar, spec: CreateSpec, token: str):
        scripts.append(spec.user_data)
        return create(self, spec, token)

    monkeypatch.setattr(Liar, "create", noted)
    return scripts


def row_of(operation: Operation) -> str:
    """As a backup holds it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT row_to_json(o)::text || convert_from(o.sealed, 'SQL_ASCII') FROM fleet_operation o WHERE id = %s",
            [operation.pk],
        )
        return str(cursor.fetchone()[0])


def test_nobody_who_reads_the_database_reads_the_script(launch):
    assert "hf_very" not in row_of(launch)
    assert "user_data" not in row_of(launch)
    assert order_of(Operation.objects.get()) == SPEC


def test_the_provider_gets_it_and_then_it_is_forgotten(launch, driver, fresh, sent):
    driver.step()
    assert sent == [SCRIPT]
    assert fresh(launch).state == "accepted"
    assert bytes(fresh(launch).sealed) == b""
    driver.run(120)
    assert fresh(launch).state == "proved"


def test_an_order_that_is_sent_again_still_has_it(launch, driver, world, fresh, sent):
    world.lies["dropped"] = 1
    driver.step()
    assert bytes(fresh(launch).sealed)
    driver.run(600)
    assert sent == [SCRIPT, SCRIPT]
    assert bytes(fresh(launch).sealed) == b""


def test_a_machine_that_is_found_by_its_token_needs_it_no_more(launch, driver, world, fresh):
    world.lies["lost"] = 1
    driver.run(60)
    assert fresh(launch).instance is not None
    assert bytes(fresh(launch).sealed) == b""


def test_what_is_given_up_is_forgotten(launch, by_alice, fresh):
    abandon_operation(actor=by_alice, operation=launch, reason="too dear")
    assert bytes(fresh(launch).sealed) == b""


def test_a_rotation_takes_launches_under_way_along(launch, settings):
    newer = Fernet.generate_key().decode()
    settings.CREDENTIAL_KEYS = [newer, *settings.CREDENTIAL_KEYS]
    call_command("rotate_credentials", verbosity=0)
    settings.CREDENTIAL_KEYS = [newer]
    assert order_of(Operation.objects.get()) == SPEC


def test_without_a_key_nothing_is_ordered(rented, by_alice, settings):
    settings.CREDENTIAL_KEYS = []
    with pytest.raises(Unsealable, match="CREDENTIAL_KEYS"):
        request_launch(actor=by_alice, account=rented, spec=SPEC, offer={})
    assert not Operation.objects.exists()


@pytest.mark.parametrize("encode", [str, json.dumps, lambda text: base64.b64encode(text.encode() * 3).decode()])
def test_a_provider_that_repeats_what_it_refuses_tells_nobody(launch, driver, fresh, monkeypatch, encode):
    def refuse(_self: Liar, spec: CreateSpec, _token: str):
        raise Invalid(f"user_data is not valid: {encode(spec.user_data)}")

    monkeypatch.setattr(Liar, "create", refuse)
    driver.step()
    failed = fresh(launch)
    assert failed.error_detail.startswith("user_data is not valid")
    assert encode(SCRIPT)[-20:] not in failed.error_detail
    assert not failed.events.filter(detail__contains="hf_very").exists()
