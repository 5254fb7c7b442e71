"""What an installation has of its own where the environment names nothing: servers, keys, and the place they lie in."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography.fernet import Fernet

from config.embedded import EmbeddedPostgres, EmbeddedValkey, data_home
from config.embedded.account import kept_secret, make_home
from config.embedded.server import EmbeddedServer


@dataclass(frozen=True)
class Installation:
    """The data of the project in directory `project`: below its `var/`, or, for root, below /var/lib/rackrent.

    The addresses are known whether or not the servers are up, so that every command finds the same ones. Secrets are made at
    their first use, with mode 0600, and stay.
    """

    project: Path

    @cached_property
    def home(self) -> Path:
        return data_home(self.project)

    @cached_property
    def postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.home / "postgres")

    @cached_property
    def valkey(self) -> EmbeddedValkey:
        return EmbeddedValkey(self.home / "valkey")

    @property
    def secret_key(self) -> str:
        return self._kept_key("secret-key", lambda: secrets.token_urlsafe(48))

    @property
    def credential_keys(self) -> str:
        """Comma-separated Fernet keys, newest first, as CREDENTIAL_KEYS has them."""
        return self._kept_key("credential-keys", lambda: Fernet.generate_key().decode())

    def _kept_key(self, name: str, make: Callable[[], str]) -> str:
        return kept_secret(make_home(self.home / "keys") / name, make)

    def servers(self, *, database: bool, broker: bool) -> list[EmbeddedServer]:
        """The embedded servers that stand in for addresses that nobody gave, in the order to start them."""
        return [server for wanted, server in ((database, self.postgres), (broker, self.valkey)) if wanted]

    @contextlib.contextmanager
    def running(self, servers: list[EmbeddedServer], at_end: Callable[[], None] = lambda: None) -> Iterator[None]:
        """The servers are up inside; after `at_end`, those that were down before are down again."""
        with contextlib.ExitStack() as stack:
            for server in servers:
                stack.enter_context(server)
            if servers:
                stack.callback(at_end)
            yield
