"""Valkey for a machine that has none: the broker and the channel layer, on a private socket with a password, no TCP."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.embedded.account import Account, EmbeddedError, make_private
from config.embedded.binaries import valkey_server
from config.embedded.server import EmbeddedServer

SOCKET_NAME = "valkey.sock"

# noeviction: a full broker must refuse a task aloud, never drop one in silence.
_CONFIG = """\
port 0
protected-mode yes
daemonize no
unixsocket {socket}
unixsocketperm 700
requirepass {password}
dir {directory}
appendonly yes
appendfsync everysec
save ""
maxmemory 256mb
maxmemory-policy noeviction
loglevel warning
logfile ""
enable-debug-command no
enable-module-command no
enable-protected-configs no
"""


class EmbeddedValkey(EmbeddedServer):
    label: ClassVar[str] = "Valkey"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    @property
    def socket(self) -> str:
        return str(self.run_dir / SOCKET_NAME)

    @property
    def password(self) -> str:
        return self.kept_secret("valkey.password")

    @property
    def url(self) -> str:
        """As redis-py and channels_redis take it."""
        return f"unix://:{quote(self.password, safe='')}@{quote(self.socket)}?db=0"

    @property
    def celery_url(self) -> str:
        """As Celery takes it, for the broker and for results alike."""
        return f"redis+socket://:{quote(self.password, safe='')}@{quote(self.socket)}?virtual_host=0"

    def is_accepting(self) -> bool:
        if not Path(self.socket).exists():
            return False
        once = Retry(NoBackoff(), 0)
        client = redis.Redis(unix_socket_path=self.socket, password=self.password, socket_timeout=5, retry=once)
        try:
            return bool(client.ping())
        except redis.AuthenticationError as error:
            raise EmbeddedError(
                f"A Valkey on {self.socket} does not know our password: its data is not from {self.home}."
            ) from error
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        finally:
            client.close()

    def _prepare(self, account: Account) -> None:
        make_private(self.home / "data", account)

    def _command(self) -> list[str]:
        return [str(valkey_server()), "-"]

    def _stdin(self) -> bytes:
        # Through stdin: neither a file nor the process list ever shows the password.
        words = {"socket": self.socket, "password": self.password, "directory": str(self.home / "data")}
        return _CONFIG.format(**{name: _quoted(word) for name, word in words.items()}).encode()


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
