"""A mail server on loopback that keeps what it gets, and answers badly as told."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread
from typing import Any


@dataclass
class MailServer:
    """`replies`: other answers to a command ("RCPT", "DATA", "END" = after the text); "" = it hangs up there."""

    replies: dict[str, str] = field(default_factory=dict)
    # By address, what it says instead of taking it.
    refused: dict[str, str] = field(default_factory=dict)
    mails: list[EmailMessage] = field(default_factory=list)
    port: int = 0


class _Handler(socketserver.StreamRequestHandler):
    service: MailServer

    def handle(self) -> None:
        with suppress(OSError):
            self._say("220 stand-in")
            while line := self.rfile.readline():
                if not self._take(line.decode().split()[0].upper(), line.decode()):
                    return

    def _take(self, verb: str, line: str) -> bool:
        usual = {"DATA": "354 go on", "QUIT": "221 bye"}.get(verb, "250 ok")
        if verb == "RCPT":
            usual = next((said for address, said in self.service.refused.items() if address in line), usual)
        if not self._reply(verb, usual):
            return False
        if verb != "DATA" or "DATA" in self.service.replies:
            return verb != "QUIT"
        lines = iter(self.rfile.readline, b".\r\n")
        mail: Any = message_from_bytes(b"".join(lines), policy=policy.default)
        if "END" not in self.service.replies:
            self.service.mails.append(mail)
        return self._reply("END", "250 taken")

    def _reply(self, verb: str, usual: str) -> bool:
        said = self.service.replies.get(verb, usual)
        if said:
            self._say(said)
        return bool(said)

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    service = MailServer()
    handler = type("Handler", (_Handler,), {"service": service})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        service.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="mail stand-in")
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
