"""GPUs that this machine had since it booted: one that is gone before the agent starts again is still missed."""

from __future__ import annotations

import contextlib
import json
import time

from agent.settings import write_privately

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Row = dict[str, object]


class KnownGpus:
    def __init__(self, path: str, boot_id: str) -> None:
        self._path = path
        self._boot_id = boot_id
        self._rows = self._remembered()
        self._missing: list[str] = []

    def learn(self, inventory: list[Row], report: Callable[[Row], None]) -> list[Row]:
        """Take an inventory of the NVML process, report GPUs that are missing from it, and give back the whole inventory.

        MIG instances come and go with the administrator's wishes, and are not missed.
        """
        seen = {str(row["uuid"]): row for row in inventory}
        missing = [uuid for uuid, row in self._rows.items() if uuid not in seen and "mig_parent" not in row]
        for uuid in missing:
            if uuid not in self._missing:
                report(
                    {
                        "at": time.time(),
                        "kind": "gpu_lost",
                        "gpu": uuid,
                        "detail": "it was there earlier since this boot",
                    }
                )
        for uuid in self._missing:
            if uuid in seen:
                report({"at": time.time(), "kind": "gpu_back", "gpu": uuid})
        whole = [_on_the_wire(row) for row in [*inventory, *(self._rows[uuid] for uuid in missing)]]
        self._missing = missing
        self._remember({str(row["uuid"]): row for row in whole})
        return whole

    def lost_rows(self) -> list[Row]:
        return [{"uuid": uuid, "state": "lost"} for uuid in self._missing]

    def _remembered(self) -> dict[str, Row]:
        """Empty after another boot: a machine may come back with other GPUs."""
        try:
            with open(self._path, encoding="utf-8") as file:
                kept = json.load(file)
            return {row["uuid"]: row for row in kept["gpus"]} if kept["boot_id"] == self._boot_id else {}
        except (OSError, ValueError, LookupError, TypeError):
            return {}

    def _remember(self, rows: dict[str, Row]) -> None:
        if rows == self._rows:
            return
        self._rows = rows
        with contextlib.suppress(OSError):
            write_privately(self._path, json.dumps({"boot_id": self._boot_id, "gpus": list(rows.values())}))


def _on_the_wire(row: Row) -> Row:
    """Without what only this machine needs to know."""
    return {name: value for name, value in row.items() if name != "gpu_instance_id"}
