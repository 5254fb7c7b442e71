"""The names by which a job's processes and directory are known on machines. Pure."""

from __future__ import annotations

import re
from secrets import token_hex

MARKER = re.compile(r"rr-job-[a-z0-9-]{8,32}")


def new_marker() -> str:
    return f"rr-job-{token_hex(8)}"
