"""The configuration of nginx, written out of what is wanted. Pure. Nothing that a person typed is in it but numbers, and a server's key in letters that mean nothing to nginx.

Two servers for each request: the outer one listens for callers, asks the dashboard who they are, and hands on; the inner one, on a socket that only we can
reach, holds the limits. So whoever has no token takes nobody's place, and requests that were left to be answered later pass by the same limits.

Under way at once are at most `most_running` of each replica and `queue_limit` more, which wait in the servers' own queues; the rest are turned away with 429.
With a rate, as many as run at once may begin at once, the next `queue_limit` are let in one by one, and the rest are turned away too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MOST_BODY_BYTES = 8 * 1024 * 1024
# What may stand in a header without being anything to nginx: base64 in all its forms, and what keys of servers are made of.
KEY = re.compile(r"[A-Za-z0-9._~+/=-]{1,400}")
NAME = re.compile(r"[a-z0-9]{8,40}")
# Of one address, before anybody knows who it is.
STRANGERS_PER_SECOND, STRANGERS_AT_ONCE = 100, 200


@dataclass(frozen=True, slots=True)
class GateConfig:
    """`sockets`: of the replicas that are up. `requests_per_second` None: no rate. `server_key`: the servers' own API key, "" = none."""

    name: str
    sockets: Sequence[str]
    most_running: int
    queue_limit: int
    requests_per_second: float | None
    timeout_seconds: int
    retry_after_seconds: int
    server_key: str = field(default="", repr=False)

    @property
    def running(self) -> int:
        return self.most_running * max(len(self.sockets), 1)

    @property
    def admitted(self) -> int:
        return self.running + self.queue_limit


@dataclass(frozen=True, slots=True)
class NginxConfig:
    """`directory`: ours alone. `listen`: where callers come in, as nginx writes it. `web`: the dashboard, `web_host` by its own name."""

    directory: str
    listen: str
    web: str
    web_host: str
    gates: Sequence[GateConfig]
    worker_connections: int = 4096

    @property
    def inner(self) -> str:
        return f"unix:{self.directory}/inner.sock"


def nginx_config(wanted: NginxConfig) -> str:
    lines = [*_top(wanted), "http {", *_indent(_http(wanted)), "}", ""]
    return "\n".join(lines)


def _top(wanted: NginxConfig) -> Iterator[str]:
    yield "daemon off;"
    yield "worker_processes 1;"
    yield f"pid {wanted.directory}/nginx.pid;"
    yield "error_log stderr warn;"
    yield f"events {{ worker_connections {wanted.worker_connections}; }}"


def _http(wanted: NginxConfig) -> Iterator[str]:
    yield "access_log off;"
    yield "server_tokens off;"
    yield "default_type application/json;"
    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        yield f"{kind}_temp_path {wanted.directory}/{kind};"
    yield f"client_max_body_size {MOST_BODY_BYTES};"
    yield "proxy_http_version 1.1;"
    # Words are handed on as they come, and a caller who hangs up frees its place.
    yield "proxy_buffering off;"
    yield "proxy_ignore_client_abort off;"
    yield f"limit_req_zone $binary_remote_addr zone=strangers:4m rate={STRANGERS_PER_SECOND}r/s;"
    for gate in wanted.gates:
        yield f"limit_conn_zone all zone=places_{gate.name}:64k;"
        if gate.requests_per_second is not None:
            yield f"limit_req_zone all zone=rate_{gate.name}:64k rate={per_minute(gate.requests_per_second)}r/m;"
        if gate.sockets:
            yield from _upstream(gate)
    yield from _block("server", _outer(wanted))
    yield from _block("server", _inner(wanted))


def per_minute(requests_per_second: float) -> int:
    """Nginx counts in whole numbers, at least one a minute."""
    return max(round(60 * requests_per_second), 1)


def _upstream(gate: GateConfig) -> Iterator[str]:
    servers = [f"server unix:{socket} max_fails=2 fail_timeout=5s;" for socket in gate.sockets]
    yield from _block(f"upstream replicas_{gate.name}", ["least_conn;", *servers])


def _outer(wanted: NginxConfig) -> Iterator[str]:
    yield f"listen {wanted.listen};"
    yield "limit_req_status 429;"
    yield f"limit_req zone=strangers burst={STRANGERS_AT_ONCE} nodelay;"
    yield "error_page 401 = @unknown;"
    yield "error_page 404 = @nothing;"
    yield "error_page 429 = @strangers;"
    yield "error_page 500 502 503 504 = @away;"
    for gate in wanted.gates:
        yield from _block(f"location = /check/{gate.name}", _check(wanted, gate))
        yield from _block(f"location ^~ /{gate.name}/v1/", _hand_on(wanted, gate))
        yield from _block(f"location ^~ /{gate.name}/later/", _later(wanted, gate))
    yield "location / { return 404; }"
    yield from _block("location @unknown", [_say(401, "invalid_api_key", "This token opens nothing here.")])
    yield from _block("location @nothing", [_say(404, "not_found", "There is nothing at this address.")])
    yield from _block("location @strangers", _turned_away(1))
    yield from _block(
        "location @away",
        ["add_header Retry-After 5 always;", _say(503, "unavailable", "The gateway is not complete now.")],
    )


def _check(wanted: NginxConfig, gate: GateConfig) -> Iterator[str]:
    yield "internal;"
    yield f"proxy_pass {wanted.web}/gateway/v1/{gate.name}/check;"
    yield from _as_dashboard(wanted)
    yield "proxy_pass_request_body off;"
    yield 'proxy_set_header Content-Length "";'


def _as_dashboard(wanted: NginxConfig) -> Iterator[str]:
    """Of what a caller sent, the token alone."""
    yield f"proxy_set_header Host {wanted.web_host};"
    yield 'proxy_set_header Connection "";'
    yield 'proxy_set_header Cookie "";'
    yield "proxy_set_header X-Forwarded-For $remote_addr;"


def _hand_on(wanted: NginxConfig, gate: GateConfig) -> Iterator[str]:
    yield f"auth_request /check/{gate.name};"
    yield f"proxy_pass http://{wanted.inner}:/{gate.name}/v1/;"
    yield 'proxy_set_header Connection "";'
    yield 'proxy_set_header Cookie "";'
    # The inner server keeps the time.
    yield f"proxy_read_timeout {gate.timeout_seconds + 30}s;"


def _later(wanted: NginxConfig, gate: GateConfig) -> Iterator[str]:
    yield f"proxy_pass {wanted.web}/gateway/v1/{gate.name}/later/;"
    yield from _as_dashboard(wanted)


def _inner(wanted: NginxConfig) -> Iterator[str]:
    yield f"listen {wanted.inner};"
    yield "limit_req_status 429;"
    yield "limit_conn_status 429;"
    for gate in wanted.gates:
        yield from _block(f"location ^~ /{gate.name}/v1/", _limited(gate))
        yield from _block(f"location @busy_{gate.name}", _turned_away(gate.retry_after_seconds))
        yield from _block(f"location @late_{gate.name}", [_say(504, "timeout", "The server did not answer in time.")])
        away = [f"add_header Retry-After {gate.retry_after_seconds} always;"]
        yield from _block(
            f"location @gone_{gate.name}", [*away, _say(503, "no_replica", "No server of this gateway answers now.")]
        )
    yield "location / { return 404; }"


def _limited(gate: GateConfig) -> Iterator[str]:
    if not gate.sockets:
        yield "add_header Retry-After " + str(gate.retry_after_seconds) + " always;"
        yield _say(503, "no_replica", "No server of this gateway answers now.")
        return
    yield f"limit_conn places_{gate.name} {gate.admitted};"
    if gate.requests_per_second is not None:
        # `delay`: so many beyond the rate begin at once, those up to `burst` wait their turn.
        delay = f"delay={gate.running}" if gate.queue_limit else "nodelay"
        yield f"limit_req zone=rate_{gate.name} burst={gate.admitted} {delay};"
    yield f"error_page 429 = @busy_{gate.name};"
    yield f"error_page 504 = @late_{gate.name};"
    yield f"error_page 502 = @gone_{gate.name};"
    yield f"proxy_pass http://replicas_{gate.name}/v1/;"
    yield "proxy_set_header Host localhost;"
    yield 'proxy_set_header Connection "";'
    # A caller's token is nothing to a server.
    yield f'proxy_set_header Authorization "{"Bearer " + checked(gate.server_key) if gate.server_key else ""}";'
    yield "proxy_connect_timeout 5s;"
    yield f"proxy_read_timeout {gate.timeout_seconds}s;"
    yield f"proxy_send_timeout {gate.timeout_seconds}s;"
    # A request that has reached a server is never sent to another: it may be half answered.
    yield "proxy_next_upstream error timeout;"
    yield "proxy_next_upstream_tries 3;"


def checked(key: str) -> str:
    """Raises ValueError for a key that nginx could take for something else."""
    if not KEY.fullmatch(key):
        raise ValueError("key")
    return key


def _turned_away(seconds: int) -> Iterator[str]:
    yield f"add_header Retry-After {seconds} always;"
    yield _say(429, "rate_limit_exceeded", "Too many requests. Try again after the time in Retry-After.")


def _say(status: int, code: str, text: str) -> str:
    """An error in the shape of OpenAI's."""
    body = json.dumps({"error": {"message": text, "type": code, "code": code}})
    return f"return {status} '{body}';"


def _block(head: str, lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from _indent(lines)
    yield "}"


def _indent(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
