"""The agent's own files: settings (with the token, for its user only) and the state directory."""

from __future__ import annotations

import json
import os

from agent.serving.address import parse_address

DEFAULT_INTERVAL_SECONDS = 5.0
DEFAULT_REPORT_SECONDS = 10.0
ACTIONS = ("accept", "pre_stop")


class SettingsError(Exception):
    """A settings file that is missing or says something else than it should; the message names the remedy."""


class Settings:
    """What enrolment wrote down. ``provider_ids`` is what the machine called itself then: a copied disk is told by it.

    ``serving``: pages of serving engines on loopback; None = those whose processes run here, [] = none.
    ``accept_peer``: an address to download from in acceptance tests; None = the dashboard.
    ``actions``: those that the dashboard may ask for; None = all that this machine has, [] = none.
    """

    __slots__ = (
        *(
            "accept_peer",
            "actions",
            "allow_http",
            "ca_file",
            "instance_id",
            "machine_id",
            "provider_ids",
            "self_update",
            "serving",
            "token",
            "url",
        ),
    )

    def __init__(
        self,
        *,
        url: str,
        token: str,
        instance_id: int,
        machine_id: str,
        provider_ids: dict[str, str] | None = None,
        ca_file: str | None = None,
        allow_http: bool = False,
        self_update: bool = False,
        serving: list[str] | None = None,
        actions: list[str] | None = None,
        accept_peer: str | None = None,
    ) -> None:
        self.url = url
        self.token = token
        self.instance_id = instance_id
        self.machine_id = machine_id
        self.provider_ids = provider_ids or {}
        self.ca_file = ca_file
        self.allow_http = allow_http
        self.self_update = self_update
        self.serving = serving
        self.actions = actions
        self.accept_peer = accept_peer

    def __repr__(self) -> str:
        return f"Settings(url={self.url!r}, instance_id={self.instance_id!r})"


def default_settings_file() -> str:
    if os.geteuid() == 0:
        return "/etc/rackrent/agent.json"
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "rackrent", "agent.json")


def default_state_directory() -> str:
    given = os.environ.get("RACKRENT_AGENT_STATE") or os.environ.get("STATE_DIRECTORY")
    if given:
        return given
    if os.geteuid() == 0:
        return "/var/lib/rackrent-agent"
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(base, "rackrent-agent")


def load_settings(path: str) -> Settings:
    """Raises SettingsError, naming the field and what to do."""
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except FileNotFoundError:
        raise SettingsError(f"{path} does not exist: run `enrol --url … --token … --config {path}` first") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read ({error}): enrol this machine again") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path} holds no JSON object: enrol this machine again")
    for name, kind in (("url", str), ("token", str), ("instance_id", int), ("machine_id", str)):
        if not isinstance(values.get(name), kind):
            raise SettingsError(f"{path}: field {name!r} is missing or of the wrong kind: enrol this machine again")
    _check_serving(path, values.get("serving"))
    _check_actions(path, values.get("actions"))
    if not isinstance(values.get("accept_peer"), (str, type(None))):
        raise SettingsError(f"{path}: field 'accept_peer' is an address such as https://files.example.org/64MiB")
    return Settings(**{name: values[name] for name in Settings.__slots__ if name in values})


def _check_serving(path: str, urls: object) -> None:
    """Raises SettingsError for anything but addresses on loopback."""
    if urls is None:
        return
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise SettingsError(f"{path}: field 'serving' is a list of addresses such as http://127.0.0.1:8000/metrics")
    try:
        for url in urls:
            parse_address(url)
    except ValueError as error:
        raise SettingsError(f"{path}: field 'serving': {error}") from None


def _check_actions(path: str, names: object) -> None:
    """Raises SettingsError: who meant to switch an action off must not leave it on by a slip of the pen."""
    if names is None:
        return
    if not isinstance(names, list) or not all(name in ACTIONS for name in names):
        raise SettingsError(
            f"{path}: field 'actions' is a list of the actions that may be asked for, of {', '.join(ACTIONS)}"
        )


def save_settings(path: str, settings: Settings) -> None:
    """Readable by our user only, and whole or not at all."""
    values = {name: getattr(settings, name) for name in Settings.__slots__}
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o755, exist_ok=True)
    write_privately(path, json.dumps(values, indent=2, sort_keys=True) + "\n")


def write_privately(path: str, text: str) -> None:
    """Replace ``path`` in one step with a file of mode 0600."""
    temporary = f"{path}.{os.getpid()}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def ensure_state_directory(path: str) -> str:
    """Our own directory, for our user only. An existing one keeps its mode: somebody chose it."""
    if not os.path.isdir(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path
