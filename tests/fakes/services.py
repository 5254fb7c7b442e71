"""Stand-ins of the services that messages go to: each checks what the real one checks and answers as it does, or badly as told."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

SECRET = "SEC0123456789abcdef"
BOT = "123456:ABC-def"
ROUTING_KEY = "0123456789abcdef0123456789abcdef"


@dataclass
class Taken:
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}


@dataclass
class Answer:
    """hang: never answers. cut: hangs up in the middle of its answer. drip: sends a byte of a header again and again."""

    status: int = 200
    body: bytes | str | dict[str, Any] = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False
    drip: bool = False

    @property
    def content(self) -> bytes:
        if isinstance(self.body, dict):
            return json.dumps(self.body).encode()
        return self.body.encode() if isinstance(self.body, str) else self.body


Judge = Callable[[Taken], Answer]
PAGE = "<!doctype html><title>Sign in</title><p>Please sign in to the proxy."


@dataclass
class Service:
    """`script`: answers to give before the judge is asked again. `taken`: every request."""

    judge: Judge
    script: list[Answer] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    over: Event = field(default_factory=Event)
    url: str = ""

    def accepted(self) -> list[Taken]:
        return [request for request in self.taken if self.judge(request).status < 300]


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            taken = Taken(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
            service.taken.append(taken)
            answer = service.script.pop(0) if service.script else service.judge(taken)
            if answer.hang:
                service.over.wait(30)
                return
            with suppress(OSError):
                if answer.drip:
                    self._drip()
                self._answer(answer)

        def _drip(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not service.over.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()

        def _answer(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content) + (1_000 if answer.cut else 0)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@contextmanager
def serving(judge: Judge) -> Iterator[Service]:
    service = Service(judge)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(service))
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="stand-in")
    thread.start()
    try:
        yield service
    finally:
        service.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _hmac(key: bytes, text: bytes) -> str:
    return base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


def slack(request: Taken) -> Answer:
    body = request.body
    header, section, actions = body["blocks"]
    right = (
        body["text"]
        and not re.search(r"<[!@#]", body["text"])
        and header["text"]["type"] == section["text"]["type"] == "plain_text"
        and len(header["text"]["text"]) <= 150
        and len(section["text"]["text"]) <= 3_000
        and 1 <= len(actions["elements"]) <= 25
        and all(len(one["text"]["text"]) <= 75 for one in actions["elements"])
    )
    return Answer(200, "ok") if right else Answer(400, "invalid_blocks")


def teams(request: Taken) -> Answer:
    card = request.body["attachments"][0]
    content = card["content"]
    right = (
        request.body["type"] == "message"
        and card["contentType"] == "application/vnd.microsoft.card.adaptive"
        and content["type"] == "AdaptiveCard"
        and all(block["type"] == "RichTextBlock" for block in content["body"])
        and all(len(action["url"]) > 0 for action in content["actions"])
        and len(request.raw) <= 28_000
    )
    return Answer(202) if right else Answer(400, {"error": {"code": "TriggerInputSchemaMismatch"}})


def discord(request: Taken) -> Answer:
    (embed,) = request.body["embeds"]
    lengths = len(embed["title"]), len(embed["description"])
    right = (
        request.body["allowed_mentions"] == {"parse": []}
        and lengths[0] <= 256
        and lengths[1] <= 4_096
        and sum(lengths) <= 6_000
        and request.query == {"wait": "true"}
    )
    return Answer(200, {"id": "1182"}) if right else Answer(400, {"code": 50035, "message": "Invalid Form Body"})


_TAG = re.compile(r"<(/?)(\w+)[^>]*>")


def telegram(request: Taken) -> Answer:
    body = request.body
    if request.path != f"/bot{BOT}/sendMessage":
        return Answer(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
    tags = {name for _closes, name in _TAG.findall(body["text"])}
    shown = _TAG.sub("", body["text"])
    if tags != {"b"} or "<" in shown:
        return Answer(400, {"ok": False, "error_code": 400, "description": "Bad Request: can't parse entities"})
    if len(body["text"]) > 4_096 or body["parse_mode"] != "HTML":
        return Answer(400, {"ok": False, "error_code": 400, "description": "Bad Request: message is too long"})
    return Answer(200, {"ok": True, "result": {"message_id": 7}})


def feishu(request: Taken) -> Answer:
    body = request.body
    if body.get("sign") != _hmac(f"{body.get('timestamp')}\n{SECRET}".encode(), b""):
        return Answer(200, {"code": 19021, "msg": "sign match fail or timestamp is not within one hour"})
    tags = [element["tag"] for element in body["card"]["elements"]]
    texts = [body["card"]["header"]["title"]["tag"], body["card"]["elements"][0]["text"]["tag"]]
    if len(request.raw) > 20_000 or tags != ["div", "action"] or texts != ["plain_text"] * 2:
        return Answer(200, {"code": 9499, "msg": "Bad Request"})
    return Answer(200, {"code": 0, "msg": "success"})


def dingtalk(request: Taken) -> Answer:
    sign = _hmac(SECRET.encode(), f"{request.query.get('timestamp')}\n{SECRET}".encode())
    if request.query.get("access_token") != "abc" or request.query.get("sign") != sign:
        return Answer(200, {"errcode": 310000, "errmsg": "sign not match"})
    card = request.body["actionCard"]
    if len(request.raw) > 20_000 or not card["btns"] or "@" in card["text"].replace("＠", ""):
        return Answer(200, {"errcode": 40035, "errmsg": "invalid parameter"})
    return Answer(200, {"errcode": 0, "errmsg": "ok"})


def wecom(request: Taken) -> Answer:
    if request.query.get("key") != "abc":
        return Answer(200, {"errcode": 93000, "errmsg": "invalid webhook url"})
    content = request.body["markdown"]["content"]
    if len(content.encode()) > 4_096 or "<@" in content:
        return Answer(200, {"errcode": 40058, "errmsg": "markdown.content exceed max length 4096"})
    return Answer(200, {"errcode": 0, "errmsg": "ok"})


def pagerduty(request: Taken) -> Answer:
    body = request.body
    if body["routing_key"] != ROUTING_KEY:
        return Answer(400, {"status": "invalid event", "errors": ["'routing_key' is invalid"]})
    right = request.path == "/v2/enqueue" and len(body["dedup_key"]) <= 255
    if body["event_action"] == "trigger":
        payload = body["payload"]
        right = right and len(payload["summary"]) <= 1_024
        right = right and payload["severity"] in {"critical", "error", "warning", "info"} and payload["source"]
    if not right or len(request.raw) > 512_000:
        return Answer(400, {"status": "invalid event", "errors": ["payload is wrong"]})
    return Answer(202, {"status": "success", "dedup_key": body["dedup_key"]})


def ntfy(request: Taken) -> Answer:
    if request.headers.get("authorization") != "Bearer tk_abc":
        return Answer(401, {"code": 40101, "http": 401, "error": "unauthorized"})
    body = request.body
    right = len(body["message"].encode()) <= 4_096 and 1 <= body["priority"] <= 5 and len(body["actions"]) <= 3
    return Answer(200, {"id": "xE73Iyuabi"}) if right else Answer(400, {"code": 40024, "error": "invalid request"})


def webhook(request: Taken) -> Answer:
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.raw
    right = request.headers["webhook-signature"] == f"v1,{_hmac(SECRET.encode(), signed)}"
    right = right and request.body["type"].startswith("alert.")
    return Answer(204) if right else Answer(400, "bad signature")


@dataclass(frozen=True)
class StandIn:
    """config: what a person would have typed, with {url} for its address. wrong: the same with a secret that it refuses."""

    judge: Judge
    config: dict[str, str]
    wrong: dict[str, str] = field(default_factory=dict)

    def typed(self, url: str, *, wrong: bool = False) -> dict[str, str]:
        config = {**self.config, **(self.wrong if wrong else {})}
        return {name: value.replace("{url}", url) for name, value in config.items()}


STAND_INS: dict[str, StandIn] = {
    "slack": StandIn(slack, {"url": "{url}/services/T/B/x"}),
    "teams": StandIn(teams, {"url": "{url}/workflows/x?sig=abc"}),
    "discord": StandIn(discord, {"url": "{url}/api/webhooks/1/x"}),
    "telegram": StandIn(telegram, {"token": BOT, "chat_id": "-1", "api_url": "{url}"}, {"token": "1:x"}),
    "feishu": StandIn(feishu, {"url": "{url}/open-apis/bot/v2/hook/x", "secret": SECRET}, {"secret": "other"}),
    "dingtalk": StandIn(
        dingtalk, {"url": "{url}/robot/send?access_token=abc", "secret": SECRET}, {"secret": "SECother"}
    ),
    "wecom": StandIn(wecom, {"url": "{url}/cgi-bin/webhook/send?key=abc"}, {"url": "{url}/cgi-bin/webhook/send?key=z"}),
    "pagerduty": StandIn(pagerduty, {"routing_key": ROUTING_KEY, "api_url": "{url}"}, {"routing_key": "f" * 32}),
    "ntfy": StandIn(ntfy, {"topic": "gpu-x7", "server": "{url}", "token": "tk_abc"}, {"token": "tk_other"}),
    "webhook": StandIn(webhook, {"url": "{url}/hook", "secret": SECRET}),
}
