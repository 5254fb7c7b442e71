"""What goes wrong at a provider becomes one of our errors, the same for all, and no secret stands in it."""

from __future__ import annotations

import logging
import traceback

import pytest

from fleet.providers.base import Capability
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    InvalidOption,
    NotFound,
    ProviderError,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from tests.fleet.providers.contract.cast import each, each_with
from tests.fleet.providers.fakes.base import PLANTED

LIST = Capability.LIST
ERRORS = {
    401: AuthFailed,
    403: ScopeMissing,
    404: NotFound,
    409: WrongState,
    422: Invalid,
    429: RateLimited,
    500: Unavailable,
}

ODD_BODIES = ("null", "[]", '{"surprise": 1}', '"busy"', "3")


def secrets_of(fake, adapter) -> list[str]:
    return [fake.options[field.name] for field in type(adapter).fields if field.secret] + [PLANTED]


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@each(LIST)
@pytest.mark.parametrize("status", ERRORS)
def test_a_refusal_in_the_providers_words_becomes_our_error(adapter, fake, status):
    fake.seed()
    fake.refuse(status, message="Not today.")
    with pytest.raises(ERRORS[status]):
        list(adapter.instances())


@each(LIST)
def test_verify_says_that_a_key_is_wrong(adapter, fake):
    fake.refuse(401)
    with pytest.raises(AuthFailed):
        adapter.verify()


@each(LIST)
def test_verify_says_that_a_key_may_not_list(adapter, fake):
    fake.refuse(403)
    with pytest.raises(ScopeMissing):
        adapter.verify()


@each(LIST)
def test_verify_accepts_a_good_key(adapter, fake):
    info = adapter.verify()
    assert len(info.currency) == 3
    assert not info.lacks


@each(LIST, when=lambda fake: fake.checks_secrets)
def test_a_wrong_secret_is_refused(adapter, fake):
    secret = next(field.name for field in type(adapter).fields if field.secret)
    with pytest.raises((AuthFailed, InvalidOption)):
        list(type(adapter)({**fake.options, secret: "another-SECRET-9876543210"}).instances())


@each(LIST)
@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, None, 7.0),
        ({"Retry-After": "7"}, b"Too many requests", 7.0),
        ({}, b"API requests too frequent", None),
        ({}, b"", None),
    ],
    ids=["header", "header and plain text", "plain text", "nothing"],
)
def test_too_many_requests_say_when_to_come_back(adapter, fake, headers, body, seconds):
    fake.refuse(429, body, headers)
    with pytest.raises(RateLimited) as limited:
        list(adapter.instances())
    assert limited.value.retry_after == seconds


@each(LIST)
@pytest.mark.parametrize("status", [200, 500, 502])
def test_a_page_of_html_is_unavailable(adapter, fake, status):
    fake.refuse(status, b"<html><h1>Bad gateway</h1></html>")
    with pytest.raises(Unavailable):
        list(adapter.instances())


@each_with(lambda kind, fake: [body for body in ODD_BODIES if body not in fake.empty_bodies], "body")
def test_json_that_is_not_the_apis_is_an_error_and_no_empty_listing(adapter, fake, body):
    fake.seed()
    fake.refuse(200, body.encode(), {"Content-Type": "application/json"})
    with pytest.raises(ProviderError):
        list(adapter.instances())


@each(LIST)
def test_an_answer_that_never_comes_is_unavailable(adapter, fake, monkeypatch):
    fake.lose_patience(monkeypatch)
    fake.hang()
    with pytest.raises(Unavailable):
        list(adapter.instances())


@each(LIST)
def test_no_secret_leaves_the_adapter(adapter, fake, caplog):
    fake.seed()
    secrets = secrets_of(fake, adapter)
    with caplog.at_level(logging.DEBUG):
        machines = list(adapter.instances())
        adapter.verify()
    told = repr(adapter) + str(adapter) + repr(machines) + caplog.text
    assert not [secret for secret in secrets if secret in told]


@each(LIST)
@pytest.mark.parametrize("status", [401, 422, 500])
def test_a_secret_that_the_provider_echoes_is_masked(adapter, fake, status, caplog):
    secrets = secrets_of(fake, adapter)[:-1]
    fake.refuse(status, message=f"no such key: {' '.join(secrets)}")
    with caplog.at_level(logging.DEBUG), pytest.raises(ProviderError) as refused:
        list(adapter.instances())
    told = shown(refused.value) + repr(refused.value) + refused.value.detail + caplog.text
    assert not [secret for secret in secrets if secret in told]
