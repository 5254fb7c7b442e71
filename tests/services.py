"""The real PostgreSQL and Valkey that tests run against, started before Django reads its settings.

DATABASE_URL and REDIS_URL, where set, are used instead.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from config.embedded import EmbeddedPostgres, EmbeddedValkey

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "var" / "test"


def provide() -> None:
    (ROOT / "staticfiles").mkdir(exist_ok=True)
    if "DATABASE_URL" not in os.environ:
        postgres = EmbeddedPostgres(DATA / "postgres")
        postgres.start()
        atexit.register(postgres.stop)
        os.environ["DATABASE_URL"] = postgres.url
    if "REDIS_URL" not in os.environ:
        valkey = EmbeddedValkey(DATA / "valkey")
        valkey.start()
        atexit.register(valkey.stop)
        os.environ["REDIS_URL"] = valkey.url
        os.environ["CELERY_BROKER_URL"] = valkey.celery_url
    os.environ.setdefault("HASHED_STATIC", "0")
    os.environ.setdefault("SECRET_KEY", "tests-" + "x" * 60)
    os.environ.setdefault("CREDENTIAL_KEYS", "dGVzdHMtdGVzdHMtdGVzdHMtdGVzdHMtdGVzdHMtdGU=")


provide()
