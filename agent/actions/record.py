"""Which actions were begun here and how they ended, on disk: what was begun once is never begun again, also after a restart."""

from __future__ import annotations

import json
import os

from agent.settings import write_privately

TYPE_CHECKING = False
if TYPE_CHECKING:
    Report = dict[str, object]

RUNNING, DONE, FAILED = "running", "done", "failed"
# More than a dashboard may ask for in a day; an id that is older than the oldest kept one is not run either
KEPT = 200
_RESTARTED = "the agent was stopped while it ran"


class RecordError(Exception):
    """What was run before is not known, or cannot be noted down: then nothing is run."""


class Record:
    """One row for each action: the report that the dashboard gets, when it was begun, and whether the dashboard has the report."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: list[Report] = []
        self.trouble = ""
        try:
            self._rows = _read(path)
        except (OSError, ValueError) as error:
            self.trouble = f"{path} cannot be read ({type(error).__name__}): no action is run before it is removed"
        for row in self._rows:
            if row["state"] == RUNNING:
                row.update(state=FAILED, detail=_RESTARTED, told=False)

    def knows(self, action_id: int) -> bool:
        if any(row["id"] == action_id for row in self._rows):
            return True
        return len(self._rows) >= KEPT and action_id < min(_number(row["id"]) for row in self._rows)

    def begun_since(self, name: str, moment: float) -> int:
        return sum(1 for row in self._rows if row["name"] == name and _number(row["at"]) >= moment)

    def begin(self, action_id: int, name: str, at: float) -> None:
        """On disk before anything is done. Raises RecordError."""
        self._add({"id": action_id, "name": name, "at": at, "state": RUNNING, "told": False})

    def refuse(self, action_id: int, name: str, at: float, detail: str) -> None:
        self._add(
            {"id": action_id, "name": f"refused {name}", "at": at, "state": FAILED, "detail": detail, "told": False}
        )

    def end(self, action_id: int, state: str, result: dict[str, object], detail: str) -> None:
        """Told from memory where the disk is full by now: the row that says that it was begun is there."""
        for row in self._rows:
            if row["id"] == action_id:
                row.update(state=state, result=result, detail=detail, told=False)
        self._save_if_possible()

    def untold(self) -> list[Report]:
        """What the dashboard has not acknowledged, oldest first."""
        fields = ("id", "state", "result", "detail")
        return [{name: row[name] for name in fields if name in row} for row in self._rows if not row["told"]]

    def told(self, action_id: int, state: object) -> None:
        """An action that ended while the report of its beginning was under way is still to be told."""
        for row in self._rows:
            if row["id"] == action_id and row["state"] == state:
                row["told"] = True
                # What it found is the dashboard's now
                row.pop("result", None)
        self._save_if_possible()

    def _add(self, row: Report) -> None:
        if self.trouble:
            raise RecordError(self.trouble)
        before = self._rows
        self._rows = [*before, row][-KEPT:]
        try:
            self._save()
        except OSError as error:
            self._rows = before
            raise RecordError(f"{self._path} cannot be written: {error}") from error

    def _save_if_possible(self) -> None:
        try:
            self._save()
        except OSError as error:
            self.trouble = f"{self._path} cannot be written: {error}"
        else:
            self.trouble = ""

    def _save(self) -> None:
        write_privately(self._path, json.dumps(self._rows, separators=(",", ":")))


def _read(path: str) -> list[Report]:
    """Raises OSError, ValueError."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(row) >= _NEEDED for row in rows):
        raise ValueError("it holds something else")
    return rows


_NEEDED = {"id", "name", "at", "state", "told"}


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
