"""Why a provider could not be read: one of the seam's errors, whatever happened, and what may be shown of it."""

from __future__ import annotations

import logging

from celery.exceptions import SoftTimeLimitExceeded
from django.utils.translation import gettext, gettext_noop

from fleet.inventory.adapters import secrets_of
from fleet.inventory.credentials import CredentialError
from fleet.inventory.models import ProviderAccount
from fleet.providers.errors import Invalid, ProviderError, Unavailable
from fleet.providers.redact import cut, redact

logger = logging.getLogger(__name__)
TOOK_TOO_LONG = gettext_noop("Reading the provider took longer than it may.")


def as_provider_error(error: Exception, account: ProviderAccount) -> ProviderError:
    """An adapter that breaks its promise is logged with its traceback; its account fails like any other."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, CredentialError):
        return Invalid(str(error))
    if isinstance(error, SoftTimeLimitExceeded):
        return Unavailable(TOOK_TOO_LONG)
    logger.error("The %s adapter failed on account %s", account.kind, account.pk, exc_info=error)
    return Unavailable(f"The adapter failed: {type(error).__name__}.")


def shown_text(account: ProviderAccount, error: ProviderError) -> str:
    """One line, without any of the account's secrets."""
    try:
        secrets = secrets_of(account)
    except CredentialError:
        secrets = {}
    return cut(redact(error.detail, secrets.values()), 500)


def in_readers_language(stored: str) -> str:
    """Texts of ours are stored as message ids; a provider's own words stay as they are."""
    return gettext(stored) if stored else ""
