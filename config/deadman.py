"""The dead-man switch: a monitoring service elsewhere raises the alarm when our pings stop."""

from __future__ import annotations

import logging

import httpx

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0


def ping_if_healthy(*, web_url: str, deadman_url: str) -> bool:
    """Ping only while everything works; returns whether it did.

    Beat sent the task and the worker runs it; the web process, asked over HTTP, answers for itself, the database, the broker
    and the age of both other pulses.
    """
    if not _is_healthy(f"{web_url}/healthz"):
        return False
    try:
        httpx.get(deadman_url, timeout=TIMEOUT_SECONDS, follow_redirects=True).raise_for_status()
    except httpx.HTTPError as error:
        # The address is a secret: whoever has it can keep the alarm quiet.
        logger.warning("The dead-man service could not be reached: %s", type(error).__name__)
        return False
    return True


def _is_healthy(address: str) -> bool:
    try:
        # Our own process: no proxy lies between.
        answer = httpx.get(address, timeout=TIMEOUT_SECONDS, trust_env=False)
    except httpx.HTTPError as error:
        logger.warning("No dead-man ping: %s does not answer (%s)", address, type(error).__name__)
        return False
    if answer.status_code != httpx.codes.OK:
        logger.warning("No dead-man ping: %s answered %s: %s", address, answer.status_code, answer.text[:500])
        return False
    return True
