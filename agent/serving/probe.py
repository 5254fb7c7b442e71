"""Reads the serving engines of this machine, in a thread of its own: an engine that hangs delays no sample of a GPU."""

from __future__ import annotations

import collections
import logging
import socket
import threading
import time

from agent.serving.discovery import EngineScan
from agent.serving.engines import PREFIXES
from agent.serving.page import PageError, fetch_page, parse_page
from agent.serving.readings import Growth, read_models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from agent.serving.address import Address

log = logging.getLogger("rackrent.serving")

PERIOD_SECONDS = 10.0
_SCAN_SECONDS = 30.0
# Samples that nobody has taken: a quarter of an hour at the usual pace
_MOST_WAITING = 90
# What the protocol takes in one sample
_MOST_ROWS = 64


class ServingProbe(threading.Thread):
    """``addresses``: what to read; None = what the processes of this machine show."""

    def __init__(self, addresses: Optional[list[Address]], root: str = "/") -> None:
        super().__init__(name="serving engines", daemon=True)
        self._given = addresses
        self._scan = EngineScan(root)
        self._found: list[Address] = []
        self._scan_at = 0.0
        self._growth = Growth()
        self._waiting: collections.deque[dict[str, object]] = collections.deque(maxlen=_MOST_WAITING)
        self._troubles: dict[str, str] = {}
        self.interval_seconds = PERIOD_SECONDS

    def run(self) -> None:
        while True:
            began = time.monotonic()
            self.read()
            period = max(PERIOD_SECONDS, self.interval_seconds)
            time.sleep(max(1.0, period - (time.monotonic() - began)))

    def take(self) -> list[dict[str, object]]:
        """Samples that nobody has taken yet, each with its own time."""
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def read(self) -> None:
        """One round over all engines. Never raises: what is wrong with one costs its own figures only."""
        for address in self._addresses(time.monotonic()):
            at = time.time()
            rows = self._rows(address)
            if rows:
                self._waiting.append({"at": at, "serving": rows[:_MOST_ROWS]})

    def _addresses(self, now: float) -> list[Address]:
        if self._given is not None:
            return self._given
        if now >= self._scan_at:
            self._scan_at = now + _SCAN_SECONDS
            try:
                self._found = self._scan.addresses()
            except OSError as error:
                self._tell("processes", f"cannot be listed: {error}")
        return self._found

    def _rows(self, address: Address) -> list[dict[str, object]]:
        try:
            text = fetch_page(address)
            rows = self._growth.rows(address.key, time.monotonic(), read_models(parse_page(text, PREFIXES)))
        except socket.timeout:  # TimeoutError is another class before 3.10
            # Busy, not gone: its counters go on
            self._tell(address.key, "does not answer in time")
            return []
        except (OSError, PageError, ValueError) as error:
            self._growth.forget(address.key)
            self._tell(address.key, str(error))
            return []
        self._tell(address.key, "" if rows else "shows no metrics of an engine that is known here")
        return [{**row, "port": address.port} for row in rows]

    def _tell(self, what: str, trouble: str) -> None:
        """Once for each change."""
        if self._troubles.get(what, "") != trouble:
            self._troubles[what] = trouble
            log.info("%s: %s", what, trouble or "is read")
