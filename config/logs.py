"""What log lines leave out."""

from __future__ import annotations

import logging


class WithoutTraceback(logging.Filter):
    """For events that anybody on the internet can cause at will: one line says it all."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = None
        return True
