"""Only what Django needs to find the models of every room. Import them from the room; name them by string in foreign keys."""

from __future__ import annotations

from jobs.book.models import *  # noqa: F403
from jobs.findings.models import *  # noqa: F403
from jobs.gateway.models import *  # noqa: F403
from jobs.learning.models import *  # noqa: F403
from jobs.loadtest.models import *  # noqa: F403
from jobs.logs.models import *  # noqa: F403
from jobs.metrics.models import *  # noqa: F403
from jobs.serving.models import *  # noqa: F403
from jobs.uploads.models import *  # noqa: F403
