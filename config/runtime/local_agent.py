"""The real agent on this very machine: enrolled like any other, with a token of its own, through the dashboard's front door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from fleet.teams.audit import Actor
from fleet.teams.models import Team
from fleet.teams.secrets import hash_token
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.models import Agent

TOKEN_LIFETIME = timedelta(minutes=10)
# All that the agent needs of our environment. Keys and addresses of the database are none of its business.
PASSED_ON = frozenset({"HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ"})


class EnrolmentFailedError(RuntimeError):
    """The agent of this machine could not be enrolled; the text says why."""


@dataclass(frozen=True)
class LocalAgent:
    """`directory` keeps the agent's settings and its queue; `project` is where the package `agent` lies."""

    directory: Path
    project: Path
    web_url: str

    @property
    def settings_file(self) -> Path:
        return self.directory / "agent.json"

    @property
    def is_enrolled(self) -> bool:
        """Whether the token that it has is one that the dashboard knows: the database may be another by now."""
        try:
            token = json.loads(self.settings_file.read_text())["token"]
        except (FileNotFoundError, ValueError, KeyError):
            return False
        return Agent.objects.filter(token_hash=hash_token(token), revoked_at=None).exists()

    def enrol(self) -> None:
        """Raises EnrolmentFailedError."""
        team = Team.objects.filter(is_sandbox=False).order_by("created_at", "pk").first()
        if team is None:
            raise EnrolmentFailedError("There is no team yet that this machine could belong to.")
        actor = Actor.system("local agent")
        _, secret = create_enrolment_token(actor=actor, team=team, lifetime=TOKEN_LIFETIME)
        done = subprocess.run(
            [*self._command("enrol"), "--url", self.web_url],
            cwd=self.project,
            env={**agent_environment(), "RACKRENT_ENROL_TOKEN": secret.secret},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise EnrolmentFailedError(done.stderr.strip())

    def become(self) -> None:
        """Turn this process into the agent, which then holds nothing of Django."""
        os.chdir(self.project)
        os.execve(sys.executable, self._command("run"), agent_environment())  # noqa: S606  # no shell is meant

    def _command(self, name: str) -> list[str]:
        files = ["--config", str(self.settings_file), "--state-dir", str(self.directory / "state")]
        return [sys.executable, "-m", "agent", name, *files]


def agent_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in PASSED_ON}
