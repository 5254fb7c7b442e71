"""The real PostgreSQL and Valkey that tests run against, started before Django reads its settings: a pair for every process that runs tests.

DATABASE_URL and REDIS_URL, where set, are used instead.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from config.embedded import EmbeddedPostgres, EmbeddedValkey

ROOT = Path(__file__).resolve().parent.parent
# What the process that only hands tests to workers is told; they inherit its environment.
NO_DATABASE = "postgresql:///no-test-runs-here"
NO_BROKER = "redis://127.0.0.1:1/0"
# The data of tests need not outlive the machine, and nobody guesses their passwords.
POSTGRES_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "scram_iterations": "1"}


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    (ROOT / "staticfiles").mkdir(exist_ok=True)
    os.environ.setdefault("HASHED_STATIC", "0")
    os.environ.setdefault("SECRET_KEY", "tests-" + "x" * 60)
    os.environ.setdefault("CREDENTIAL_KEYS", "dGVzdHMtdGVzdHMtdGVzdHMtdGVzdHMtdGVzdHMtdGU=")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if early_config.known_args_namespace.numprocesses and not worker:
        stand_back()
    else:
        provide(ROOT / "var" / "test" / worker)
    yield


def stand_back() -> None:
    if "REDIS_URL" in os.environ:
        raise pytest.UsageError("REDIS_URL names one server, and workers need one each: unset it, or add -n 0.")
    os.environ.setdefault("DATABASE_URL", NO_DATABASE)
    os.environ["REDIS_URL"] = NO_BROKER


def provide(data: Path) -> None:
    if os.environ.get("DATABASE_URL", NO_DATABASE) == NO_DATABASE:
        postgres = EmbeddedPostgres(data / "postgres", settings=POSTGRES_SETTINGS)
        postgres.start()
        atexit.register(postgres.stop)
        os.environ["DATABASE_URL"] = postgres.url
    if os.environ.get("REDIS_URL", NO_BROKER) == NO_BROKER:
        valkey = EmbeddedValkey(data / "valkey")
        valkey.start()
        atexit.register(valkey.stop)
        os.environ["REDIS_URL"] = valkey.url
        os.environ["CELERY_BROKER_URL"] = valkey.celery_url
