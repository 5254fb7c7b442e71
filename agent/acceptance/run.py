"""``accept`` as an action: starts the testing process and makes one result of its lines."""

from __future__ import annotations

import json

from agent import program
from agent.actions.child import Ended, run_child
from agent.actions.record import DONE, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Outcome = tuple[str, dict[str, object], str]

_MOST_OUTPUT_BYTES = 512 << 10
# It keeps to its time by itself; this is for one that hangs
_GRACE_SECONDS = 20.0


def run_accept(
    *, seconds: int, when_busy: bool, settings_file: str, state_directory: str, stopping: Callable[[], bool]
) -> Outcome:
    words = [str(seconds), settings_file, state_directory, *(["when-busy"] if when_busy else [])]
    ended = run_child(
        program.command("accept-child", *words),
        environment=program.child_environment(),
        timeout_seconds=seconds + _GRACE_SECONDS,
        kept_bytes=_MOST_OUTPUT_BYTES,
        stopping=stopping,
        errors=None,
    )
    result = merged(ended.output)
    why = _why_failed(ended, result)
    return (FAILED if why else DONE), result, why


def merged(output: bytes) -> dict[str, object]:
    """{"cpu": {…}, …, "not_measured": {"torch": "why"}}."""
    result: dict[str, object] = {}
    missing: dict[str, str] = {}
    for line in output.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and isinstance(said.get("part"), str):
            result[said["part"]] = said.get("value")
        elif isinstance(said, dict) and isinstance(said.get("not"), str):
            missing[said["not"]] = str(said.get("why", ""))[:200]
    return {**result, **({"not_measured": missing} if missing else {})}


def _why_failed(ended: Ended, result: dict[str, object]) -> str:
    if "busy" in result:
        return "its GPUs work: nothing was tested"
    if ended.timed_out:
        return "it did not end in its time and was ended"
    if ended.stopped:
        return "it was ended: the agent stops, or the machine is about to be stopped"
    return f"the testing process ended with status {ended.code}" if ended.code else ""
