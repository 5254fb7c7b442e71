"""What is heard of jobs, after the commit: an attempt has something to do; a job has ended."""

from __future__ import annotations

from django.dispatch import Signal

attempt_due = Signal()
job_ended = Signal()


def announce(attempt_id: int) -> None:
    """Robust: whoever asked for it has done so, also where nobody listens; the beat finds it."""
    attempt_due.send_robust(sender=None, attempt_id=attempt_id)


def announce_end(job_id: int) -> None:
    job_ended.send_robust(sender=None, job_id=job_id)
