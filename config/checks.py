"""Refuses settings that would be unsafe or could not work.

`rackrent.E…` stops every command and the web process, `rackrent.W…` is only said; docs/operate.md lists them. A fresh machine,
with its own servers and generated keys and nobody else reaching it, passes them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import SplitResult, urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register, run_checks  # noqa: A004  # its own word
from django.core.exceptions import ImproperlyConfigured
from django.http.request import split_domain_port, validate_host

from config.reach import is_loopback
from fleet.guard import Guard
from fleet.inventory.reach import reach_problem
from fleet.telemetry.store.names import STORES

METRICS_TOKEN_MIN_LENGTH = 24
SECRET_KEY_MIN_LENGTH, SECRET_KEY_MIN_DISTINCT = 50, 5
NEW_SECRET_KEY = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(48))", and keep it in SECRET_KEY or SECRET_KEY_FILE.'  # noqa: S105  # the way to one
NEW_CREDENTIAL_KEY = (
    'Make one: python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())". '
    "To rotate, put the new one before the old ones, separated by commas."
)
REDIS_SCHEMES = {"redis", "rediss", "unix"}


def is_exposed() -> bool:
    """Whether others than this machine's own users are to reach this installation."""
    public = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    return not (is_loopback(settings.RACKRENT_HOST) and is_loopback(public))


def is_real_use() -> bool:
    return is_exposed() or not settings.EMBEDDED_DATABASE


def refuse_unsafe_settings() -> None:
    """For processes that are not started through manage.py. Raises ImproperlyConfigured with every error there is."""
    errors = [message for message in run_checks(tags=[Tags.security]) if message.is_serious()]
    if errors:
        raise ImproperlyConfigured("These settings are refused:\n" + "\n".join(str(error) for error in errors))


@register(Tags.security)
def check_secret_key(**_: object) -> Iterator[CheckMessage]:
    try:
        key = settings.SECRET_KEY
    except ImproperlyConfigured:
        yield Error("SECRET_KEY is not set.", hint=NEW_SECRET_KEY, id="rackrent.E001")
        return
    if len(key) < SECRET_KEY_MIN_LENGTH or len(set(key)) < SECRET_KEY_MIN_DISTINCT:
        yield Error("SECRET_KEY is too short or too simple.", hint=NEW_SECRET_KEY, id="rackrent.E001")


@register(Tags.security)
def check_credential_keys(**_: object) -> Iterator[CheckMessage]:
    keys: Sequence[str] = settings.CREDENTIAL_KEYS
    if not keys:
        problem = "CREDENTIAL_KEYS is not set: provider credentials could not be stored."
        yield Error(problem, hint=NEW_CREDENTIAL_KEY, id="rackrent.E002")
    for number, key in enumerate(keys, start=1):
        if not _is_fernet_key(key):
            yield Error(
                f"Key {number} in CREDENTIAL_KEYS is no Fernet key.", hint=NEW_CREDENTIAL_KEY, id="rackrent.E003"
            )


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True


@register(Tags.security)
def check_debug(**_: object) -> Iterator[CheckMessage]:
    if settings.DEBUG and is_exposed():
        hint = "Unset DEBUG: its error pages show settings and source to whoever causes an error."
        yield Error("DEBUG is on while other machines can reach this one.", hint=hint, id="rackrent.E004")


@register(Tags.security)
def check_allowed_hosts(**_: object) -> Iterator[CheckMessage]:
    if "*" in settings.ALLOWED_HOSTS and is_real_use():
        hint = "List the names that people type, for example ALLOWED_HOSTS=rackrent.example.org; left out, it follows PUBLIC_URL."
        yield Error("ALLOWED_HOSTS accepts every name, so forged links can be sent.", hint=hint, id="rackrent.E005")


@register(Tags.security)
def check_public_url(**_: object) -> Iterator[CheckMessage]:
    if not settings.PUBLIC_URL:
        return
    parts = urlsplit(settings.PUBLIC_URL)
    if not _is_plain_address(parts):
        hint = "Write scheme and host only, for example https://rackrent.example.org."
        yield Error("PUBLIC_URL is no plain http:// or https:// address.", hint=hint, id="rackrent.E006")
    elif not validate_host(split_domain_port(parts.netloc.lower())[0], settings.ALLOWED_HOSTS):
        hint = f"Add {parts.hostname} to ALLOWED_HOSTS."
        yield Error("ALLOWED_HOSTS refuses the host of PUBLIC_URL.", hint=hint, id="rackrent.E007")


def _is_plain_address(parts: SplitResult) -> bool:
    surplus = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not surplus


@register(Tags.security)
def check_broker(**_: object) -> Iterator[CheckMessage]:
    try:
        parts = urlsplit(settings.REDIS_URL)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in REDIS_SCHEMES:
        hint = "Write redis://:password@host:6379/0 (rediss:// for TLS)."
        yield Error("REDIS_URL is no Redis address.", hint=hint, id="rackrent.E008")
    elif parts.hostname and not is_loopback(parts.hostname) and not parts.password:
        hint = "Give the server a password (requirepass) and write it into REDIS_URL: whoever reaches it can run tasks."
        yield Error("REDIS_URL names a server on the network without a password.", hint=hint, id="rackrent.E009")


@register(Tags.security)
def check_deadman_url(**_: object) -> Iterator[CheckMessage]:
    if settings.DEADMAN_URL and urlsplit(settings.DEADMAN_URL).scheme not in {"http", "https"}:
        yield Error("DEADMAN_URL is no http:// or https:// address.", id="rackrent.E010")


@register(Tags.security)
def check_metrics_token(**_: object) -> Iterator[CheckMessage]:
    token = settings.METRICS_TOKEN
    if token and (len(token) < METRICS_TOKEN_MIN_LENGTH or not token.isascii() or any(map(str.isspace, token))):
        hint = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        yield Error(
            f"METRICS_TOKEN is shorter than {METRICS_TOKEN_MIN_LENGTH} characters, or has a space in it.",
            hint=hint,
            id="rackrent.E018",
        )


@register(Tags.security)
def check_email(**_: object) -> Iterator[CheckMessage]:
    if settings.EMAIL_USE_TLS and settings.EMAIL_USE_SSL:
        hint = "Keep EMAIL_USE_TLS (STARTTLS, port 587) or EMAIL_USE_SSL (port 465)."
        yield Error("EMAIL_USE_TLS and EMAIL_USE_SSL exclude each other.", hint=hint, id="rackrent.E011")
    if is_real_use() and settings.EMAIL_BACKEND.endswith("console.EmailBackend"):
        hint = "Set EMAIL_HOST, and EMAIL_HOST_USER and EMAIL_HOST_PASSWORD where the server asks for them."
        yield Warning("EMAIL_HOST is not set: e-mail is only written to the log.", hint=hint, id="rackrent.W001")


@register(Tags.security)
def check_reach(**_: object) -> Iterator[CheckMessage]:
    problem = reach_problem(settings.PUBLIC_URL)
    if problem and is_real_use():
        yield Warning(str(problem.reason), hint=str(problem.remedy), id="rackrent.W002")


@register(Tags.security)
def check_proxy(**_: object) -> Iterator[CheckMessage]:
    if settings.USES_HTTPS and not settings.BEHIND_PROXY:
        hint = "Set BEHIND_PROXY=1, and TRUSTED_PROXIES to the addresses of the reverse proxy that ends TLS."
        yield Warning("PUBLIC_URL is https://, but no proxy is trusted to say so.", hint=hint, id="rackrent.W003")
    if settings.BEHIND_PROXY and "*" in settings.TRUSTED_PROXIES:
        hint = "List the proxy's addresses: with *, a caller can write any address into X-Forwarded-For and escape throttles."
        yield Error("TRUSTED_PROXIES trusts everybody.", hint=hint, id="rackrent.E012")


@register(Tags.security)
def check_allowed_networks(**_: object) -> Iterator[CheckMessage]:
    for network in settings.ALLOWED_NETWORKS:
        try:
            Guard.of([network])
        except ValueError:
            hint = "Write networks as in 10.20.0.0/16,fd12:3456::/32, without bits to the right of the mask."
            yield Error(f"{network} in ALLOWED_NETWORKS is no network.", hint=hint, id="rackrent.E017")


@register(Tags.security)
def check_telemetry_store(**_: object) -> Iterator[CheckMessage]:
    if settings.TELEMETRY_STORE not in STORES:
        hint = "Write postgresql, or prometheus with TELEMETRY_WRITE_URL and TELEMETRY_READ_URL."
        yield Error(f"TELEMETRY_STORE is {settings.TELEMETRY_STORE!r}.", hint=hint, id="rackrent.E019")
    if settings.TELEMETRY_STORE != "prometheus":
        return
    for name in ("TELEMETRY_WRITE_URL", "TELEMETRY_READ_URL"):
        parts = urlsplit(getattr(settings, name))
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
            hint = "Write it like http://vminsert:8480/insert/0/prometheus/api/v1/write and http://vmselect:8481/select/0/prometheus; a login has settings of its own."
            yield Error(f"{name} is no plain http:// or https:// address.", hint=hint, id="rackrent.E020")
    if settings.TELEMETRY_BEARER_TOKEN and settings.TELEMETRY_USER:
        hint = "Keep TELEMETRY_BEARER_TOKEN, or TELEMETRY_USER with TELEMETRY_PASSWORD."
        yield Error("Two ways to sign in at the store of readings are set.", hint=hint, id="rackrent.E021")
