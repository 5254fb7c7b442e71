"""The processes of an installation, one of each kind, and how each is started. The Procfile names the same."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands

from config.celery import LONG_QUEUE, OUTSIDE_QUEUE, app
from config.runtime.children import Program
from config.web import SHUTDOWN_SECONDS, SOCKET_VARIABLE

PYTHON = sys.executable
# Workers here know nothing of each other.
_ALONE = ("--without-gossip", "--without-mingle")
# Warm shutdown: running tasks are given this long to end.
WORKER_STOP_SECONDS = 20.0
# Too short for a task that takes minutes in any case: what it had not committed is done again.
LONG_STOP_SECONDS = 5.0
# nginx is given 10 of them.
GATEWAY_STOP_SECONDS = 15.0


def web(listening: socket.socket) -> Program:
    number = listening.fileno()
    return Program(
        "web",
        [PYTHON, "-m", "config.web"],
        settings.BASE_DIR,
        environment={SOCKET_VARIABLE: str(number)},
        pass_fds=(number,),
        stop_seconds=SHUTDOWN_SECONDS + 4,
    )


def worker() -> Program:
    options = [f"--concurrency={settings.WORKER_CONCURRENCY}", f"--queues={app.conf.task_default_queue}", *_ALONE]
    return _celery("worker", options, stop_seconds=WORKER_STOP_SECONDS)


def long_worker() -> Program:
    """For LONG_TASKS, one after the other."""
    options = ["--concurrency=1", f"--queues={LONG_QUEUE}", "--hostname=long@%h", *_ALONE]
    return _celery("worker", options, name="long", stop_seconds=LONG_STOP_SECONDS)


def outside_worker() -> Program:
    """For OUTSIDE_TASKS."""
    options = [
        f"--concurrency={settings.OUTSIDE_CONCURRENCY}",
        f"--queues={OUTSIDE_QUEUE}",
        "--hostname=outside@%h",
        *_ALONE,
    ]
    return _celery("worker", options, name="outside", stop_seconds=WORKER_STOP_SECONDS)


def beat(home: Path) -> Program:
    # When it last sent what: after a restart, a daily task is not sent again at once.
    schedule = home / "beat" / "schedule"
    schedule.parent.mkdir(mode=0o700, exist_ok=True)
    return _celery("beat", [f"--schedule={schedule}", "--pidfile="])


def _celery(command_name: str, options: list[str], *, name: str = "", stop_seconds: float = 10.0) -> Program:
    command = [PYTHON, "-m", "celery", "-A", "config", "--quiet", command_name, "--loglevel=WARNING", *options]
    # Tasks are JSON, which is what Celery's warning about root is about.
    quiet = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges"}
    return Program(name or command_name, command, settings.BASE_DIR, environment=quiet, stop_seconds=stop_seconds)


def agent() -> Program | None:
    """The real agent on this machine, unless LOCAL_AGENT=0."""
    if not settings.LOCAL_AGENT:
        return None
    return Program("agent", [PYTHON, "manage.py", "local_agent"], settings.BASE_DIR)


def gateway() -> Program | None:
    """Nginx before jobs that serve, where the operator gave it a port."""
    if not settings.GATEWAY_PORT:
        return None
    return Program("gateway", [PYTHON, "manage.py", "gateway"], settings.BASE_DIR, stop_seconds=GATEWAY_STOP_SECONDS)


def sandbox() -> Program | None:
    """The sandbox fleet; not beside real data, and not where SANDBOX=0."""
    if not settings.SANDBOX or "sandbox" not in get_commands():
        return None
    return Program("sandbox", [PYTHON, "manage.py", "sandbox"], settings.BASE_DIR)
