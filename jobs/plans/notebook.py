"""A notebook as a job: a Jupyter on the machine's own loopback, reached over SSH alone, its token a secret of the job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import randbelow, token_urlsafe
from typing import Any

from fleet.inventory.credentials import open_sealed
from fleet.inventory.remote import SshAddress
from fleet.teams.audit import Actor, record
from jobs.book.models import Job, JobKind, Node

# As Jupyter's own server reads it.
TOKEN = "JUPYTER_TOKEN"  # noqa: S105 - the name of a variable
PORT = "NOTEBOOK_PORT"
# Where few programs listen, so that several notebooks fit on one machine.
FIRST_PORT, PORTS = 20_000, 10_000
LOCAL_PORT = 8888
COMMAND = 'exec jupyter lab --no-browser --allow-root --ip=127.0.0.1 --port="$NOTEBOOK_PORT" --ServerApp.port_retries=0'
SCRIPT = """#!/usr/bin/env bash
# JupyterLab beside what the machine has already: its torch is seen.
set -euo pipefail
python3 -m venv --system-site-packages "${VENV:=.venv}"
. "$VENV/bin/activate"
python -m pip install jupyterlab==4.6.6
"""


@dataclass(frozen=True, slots=True)
class Way:
    """How somebody gets to a notebook from their own machine. `url` without the token."""

    command: str
    url: str


def notebook_values() -> dict[str, Any]:
    """Of an order, by the names of its columns: a new token and port each time."""
    return {
        "kind": JobKind.NOTEBOOK,
        "command": COMMAND,
        "environment": {PORT: str(FIRST_PORT + randbelow(PORTS))},
        "secrets": {TOKEN: token_urlsafe(32)},
        "files": [{"path": "install.sh", "text": SCRIPT}],
        "installs": True,
    }


def way_to(node: Node, environment: Mapping[str, str]) -> Way | None:
    """None: it was not reached yet, or is none that was begun as a notebook."""
    port = environment.get(PORT, "")
    if not node.address or not port.isdecimal():
        return None
    address = SshAddress.parse(node.address)
    host = f"[{address.host}]" if ":" in address.host else address.host
    words = ["ssh", "-N", "-L", f"{LOCAL_PORT}:127.0.0.1:{port}", "-p", str(address.port), f"{address.user}@{host}"]
    return Way(shlex.join(words), f"http://127.0.0.1:{LOCAL_PORT}/lab")


def show_token(*, actor: Actor, job: Job) -> str:
    """Empty where it has none. Leaves an audit row: whoever has it runs what they like there. Raises CredentialError."""
    token = open_sealed(job.secrets).get(TOKEN, "")
    if token:
        record(actor=actor, team=job.team, action="job.show_token", target=job, new={"name": job.name})
    return token
