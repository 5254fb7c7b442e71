"""Settings for the type checker, which reads models and never opens a database."""

from __future__ import annotations

import os

os.environ.setdefault("DATABASE_URL", "postgresql:///rackrent")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:6379/0")
os.environ.setdefault("SECRET_KEY", "only-for-the-type-checker")

from config.settings import *  # noqa: F403
