from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.conf import settings

from fleet.teams.models import User

NOWHERE = "postgresql://someone:hidden-word@127.0.0.1:1/nowhere"


def up(**environment: str) -> subprocess.CompletedProcess[str]:
    own = {"RACKRENT_PORT": "0", "LOCAL_AGENT": "0", **environment}
    command = [sys.executable, "manage.py", "up"]
    return subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)


def test_a_port_that_is_no_port_is_refused():
    done = up()
    assert done.returncode == 1
    assert "RACKRENT_PORT is 0; it must lie between 1 and 65535." in done.stderr


def test_history_that_would_end_before_samples_do_is_refused():
    done = up(RACKRENT_PORT="8400", RAW_HISTORY_DAYS="2")
    assert done.returncode == 1
    assert "RAW_HISTORY_DAYS is 2; write 0, or more days than RAW_RETENTION_DAYS (2)." in done.stderr


@pytest.fixture
def free_port(unused_tcp_port: int) -> str:
    return str(unused_tcp_port)


@pytest.fixture
def data_dir(tmp_path_factory: pytest.TempPathFactory):
    import shutil
    import tempfile
    from pathlib import Path

    directory = Path(tempfile.mkdtemp(prefix="rackrent-up-", dir="/var/tmp"))
    directory.chmod(0o755)
    yield str(directory)
    shutil.rmtree(directory)


def test_a_database_that_does_not_answer_is_said_without_its_password(free_port: str, data_dir: str):
    done = up(RACKRENT_PORT=free_port, RACKRENT_DATA_DIR=data_dir, DATABASE_URL=NOWHERE)
    assert done.returncode == 1
    assert "The database cannot be used (see DATABASE_URL)" in done.stderr
    assert "hidden-word" not in done.stdout + done.stderr


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_does_not_answer_is_said_without_its_password(free_port: str, data_dir: str):
    database = str(settings.DATABASE_URL).replace("/rackrent?", f"/{settings.DATABASES['default']['NAME']}?")
    done = up(
        RACKRENT_PORT=free_port,
        RACKRENT_DATA_DIR=data_dir,
        DATABASE_URL=database,
        REDIS_URL="redis://:hidden-word@127.0.0.1:1/0",
    )
    assert done.returncode == 1
    assert "The broker cannot be used (see REDIS_URL)" in done.stderr
    assert "hidden-word" not in done.stdout + done.stderr
    # An admin made now would have a password that nobody ever saw.
    assert not User.objects.exists()
