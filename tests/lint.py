"""Django's own checks as part of `make lint`: production settings, missing migrations, untranslated texts."""

from __future__ import annotations

import os
import subprocess
import sys

# Settings as a careful operator has them; nothing here is used outside this check.
PRODUCTION = {
    "DATABASE_URL": "postgresql:///rackrent",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "SECRET_KEY": "lint-" + "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOP",
    "CREDENTIAL_KEYS": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "PUBLIC_URL": "https://rackrent.example",
    "ALLOWED_HOSTS": "rackrent.example",
    "BEHIND_PROXY": "1",
    "EMAIL_HOST": "mail.example",
}
COMMANDS = (
    ["check", "--deploy", "--fail-level", "WARNING"],
    ["makemigrations", "--check", "--dry-run"],
    ["messages", "--check"],
)


def main() -> int:
    # Neither check opens the database; migrations warn when it is away.
    environment = {**os.environ, **PRODUCTION, "PYTHONWARNINGS": "ignore::RuntimeWarning"}
    codes = [
        subprocess.run([sys.executable, "manage.py", *words], check=False, env=environment).returncode
        for words in COMMANDS
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
