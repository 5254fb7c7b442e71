"""How a job itself says how far it is: an address and a token in its environment. Only their hash is kept."""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.urls import reverse

from fleet.teams.secrets import hash_token
from jobs.book.models import Attempt, Job


def token_of(attempt: Attempt) -> str:
    """The same for every machine of a job and after every crash, without being kept: made from the installation's key and the job's number."""
    made = hmac.new(
        settings.SECRET_KEY.encode(),
        f"jobs.tells:{attempt.job_id}:{attempt.job.created_at.isoformat()}".encode(),
        hashlib.sha256,
    )
    return f"rrj_{made.hexdigest()[:40]}"


def tells_of(attempt: Attempt) -> dict[str, str]:
    token = token_of(attempt)
    Job.objects.filter(pk=attempt.job_id).update(token_hash=hash_token(token))
    base = str(settings.PUBLIC_URL or settings.WEB_URL).rstrip("/")
    return {"RACKRENT_URL": f"{base}{reverse('job_tell')}", "RACKRENT_TOKEN": token}
