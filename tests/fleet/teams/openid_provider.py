"""A small OpenID provider on a loopback port: real HTTP, real RS256 signatures, and knobs to misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "rackrent", "client-secret"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class OpenIDProvider:
    def __init__(self) -> None:
        self.key = self.published_key = new_key()
        self.person: dict[str, Any] = {}
        self.token_changes: dict[str, Any] = {}
        self.userinfo_changes: dict[str, Any] = {}
        self.algorithm = "RS256"
        self.codes: dict[str, dict[str, str]] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def discovery(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            **{k: f"{self.url}/{v}" for k, v in names.items()},
        }

    def keys(self) -> dict[str, Any]:
        described = jwt.algorithms.RSAAlgorithm.to_jwk(self.published_key.public_key(), as_dict=True)
        return {"keys": [{**described, "kid": "1", "alg": "RS256", "use": "sig"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """The address that the browser is sent back to."""
        code = secrets.token_urlsafe(8)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """None unless code, client, redirect address and PKCE verifier are those of the authorization."""
        if (asked := self.codes.pop(form["code"], None)) is None:
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        sent = (form["client_id"], form["client_secret"], form["redirect_uri"], challenge)
        if sent != (CLIENT_ID, CLIENT_SECRET, asked["redirect_uri"], asked["code_challenge"]):
            return None
        return {"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(asked)}

    def id_token(self, asked: dict[str, str]) -> str:
        claims = {
            "iss": self.url,
            "sub": self.person["sub"],
            "aud": CLIENT_ID,
            "nonce": asked["nonce"],
            "exp": time.time() + 300,
            "iat": time.time(),
            **self.token_changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        key: Any = {"RS256": self.key, "HS256": CLIENT_SECRET + "-" * 40, "none": None}[self.algorithm]
        return jwt.encode(claims, key, self.algorithm, headers={"kid": "1"})

    def userinfo(self) -> dict[str, Any]:
        return {**self.person, **self.userinfo_changes}


def handler_for(provider: OpenIDProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def answer(self, body: object, status: int = 200, **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.answer({}, 302, Location=provider.authorize(query))
            elif parts.path == "/userinfo" and self.headers["Authorization"] != "Bearer at":
                self.answer({}, 401)
            else:
                pages = {
                    "/.well-known/openid-configuration": provider.discovery,
                    "/keys": provider.keys,
                    "/userinfo": provider.userinfo,
                }
                self.answer(pages[parts.path]())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answer = provider.token({name: values[0] for name, values in parse_qs(body).items()})
            self.answer(answer or {"error": "invalid_grant"}, 200 if answer else 400)

    return Handler
