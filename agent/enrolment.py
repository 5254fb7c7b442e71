"""Becoming known to a dashboard: one token for enrolling is given, one of this machine's own comes back."""

from __future__ import annotations

import hashlib
import json
import os
import uuid

from agent import __version__
from agent.batching import shortened
from agent.host import files
from agent.host.boot import boot_id
from agent.host.container import container_kind
from agent.host.environment import environment
from agent.sender import describe
from agent.serving.address import parse_address
from agent.settings import Settings, SettingsError, load_settings
from agent.transport import Dashboard

_PATH = "/ingest/v1/enrol"
_REMEDIES = {
    401: "the enrolment token is unknown, expired, revoked or used up: make a new one in the dashboard under Settings, Enrolment",
    404: "that address answers, but no dashboard is there: check --url",
    409: "this token was for one machine and another machine has used it: make a new one in the dashboard",
}


class EnrolmentError(Exception):
    """The dashboard did not take this machine; the message says what to do."""


def enrol(
    *,
    url: str,
    token: str,
    settings_file: str,
    gpus: list[dict[str, object]],
    ca_file: str | None = None,
    allow_http: bool = False,
    serving: list[str] | None = None,
) -> Settings:
    """Enrol and return the settings to save; ``serving`` None keeps what they said. Raises EnrolmentError, TransportError, AddressError, ValueError."""
    for address in serving or ():
        parse_address(address)
    facts = environment()
    machine = machine_id(settings_file)
    body = {
        "v": 1,
        "agent_version": __version__,
        "hostname": facts.get("hostname", ""),
        "machine_id": machine,
        "boot_id": boot_id(),
        "provider_ids": facts.get("provider_ids", {}),
        "gpus": gpus,
        "host": facts,
    }
    answer = Dashboard(url, token, ca_file=ca_file, allow_http=allow_http).post(
        _PATH, json.dumps(shortened(body)).encode()
    )
    if answer.status not in (200, 201):
        raise EnrolmentError(
            f"{_REMEDIES.get(answer.status, 'the dashboard refused')} (status {answer.status}: {describe(answer)})"
        )
    instance, own_token = answer.body.get("instance_id"), answer.body.get("token")
    if not isinstance(instance, int) or not isinstance(own_token, str):
        raise EnrolmentError("the answer holds no instance_id and token: is that address really a Rackrent dashboard?")
    kept = _kept(settings_file)
    ids = {str(name): str(value) for name, value in dict(facts.get("provider_ids") or {}).items()}  # type: ignore[call-overload]  # read from JSON
    return Settings(
        url=url.rstrip("/"),
        token=own_token,
        instance_id=instance,
        machine_id=machine,
        provider_ids=ids,
        ca_file=os.path.abspath(ca_file) if ca_file else None,
        allow_http=allow_http,
        serving=serving if kept is None or serving is not None else kept.serving,
        actions=None if kept is None else kept.actions,
        accept_peer=None if kept is None else kept.accept_peer,
    )


def _kept(settings_file: str) -> Settings | None:
    """What an earlier enrolment wrote down, and the administrator changed."""
    try:
        return load_settings(settings_file)
    except SettingsError:
        return None


def machine_id(settings_file: str, root: str = "/") -> str:
    """A name that this machine keeps and no other has.

    /etc/machine-id alone will not do: container images carry one into every container, and cloned disks too. So in containers
    an earlier enrolment's id is kept or a random one made, and so where only root may read the firmware's id; elsewhere that is
    mixed in. Hashed, as machine-id(5) asks, for it is confidential.
    """
    try:
        return load_settings(settings_file).machine_id
    except SettingsError:
        pass
    system, firmware = (
        (files.read_text_or_none(root + path) or "").strip()
        for path in ("etc/machine-id", "sys/class/dmi/id/product_uuid")
    )
    if container_kind(root) != "none" or not firmware:
        return uuid.uuid4().hex
    return hashlib.sha256(f"rackrent\n{system}\n{firmware}".encode()).hexdigest()[:32]
