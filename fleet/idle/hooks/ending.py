"""How a run of a pre-stop action ends: once."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.hooks.models import HookRun, HookState

OPEN = (HookState.ASKED, HookState.RUNNING)


def end_run(
    run: HookRun, state: HookState, *, at: datetime, code: str = "", exit_code: int | None = None, last_line: str = ""
) -> bool:
    """False: it had ended, and what was written then stays."""
    values = {"state": state, "ended_at": at, "code": code, "exit_code": exit_code, "last_line": last_line[:300]}
    if not HookRun.objects.filter(pk=run.pk, state__in=OPEN).update(**values):
        run.refresh_from_db()
        return False
    for name, value in values.items():
        setattr(run, name, value)
    return True
