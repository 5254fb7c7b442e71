"""The team's policies, one line each: whom they cover, after how long, and what they do then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from fleet.formats import duration_text
from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom
from fleet.idle.shutdown.models import IdleSaving, IdleStopStage
from fleet.teams.models import Team

LATELY = timedelta(days=30)


@dataclass(frozen=True)
class PolicyLine:
    policy: IdlePolicy
    stops: int
    called_off: int
    saved: dict[str, Decimal]

    @property
    def window(self) -> str:
        """How long quiet means idle; of a recommendation that is not there yet, that."""
        if self.policy.window_from == IdleWindowFrom.FIXED:
            return duration_text(self.policy.window_minutes * 60)
        if self.policy.recommended_minutes is None:
            return _("history recommends none")
        return duration_text(self.policy.recommended_minutes * 60)

    @property
    def is_learned(self) -> bool:
        return self.policy.window_from == IdleWindowFrom.RECOMMENDED

    @property
    def grace(self) -> str:
        if self.policy.action == IdleAction.ALERT:
            return ""
        return _("%(time)s after the warning") % {"time": duration_text(self.policy.grace_minutes * 60)}


def policy_lines(team: Team) -> list[PolicyLine]:
    """In the order in which they are asked; of a machine the first that covers it counts."""
    since = timezone.now() - LATELY
    lately = Q(stops__began_at__gt=since)
    rows = (
        IdlePolicy.objects.filter(team=team, removed_at=None)
        .select_related("project", "account")
        .annotate(
            done=Count("stops", filter=lately & Q(stops__stage=IdleStopStage.STOPPED)),
            cancelled=Count("stops", filter=lately & Q(stops__stage=IdleStopStage.CANCELLED)),
        )
        .order_by("position", "pk")
    )
    saved = _saved_by_policy(team, since)
    return [PolicyLine(row, row.done, row.cancelled, saved.get(row.pk, {})) for row in rows]


def _saved_by_policy(team: Team, since: datetime) -> dict[int, dict[str, Decimal]]:
    sums = (
        IdleSaving.objects.filter(team=team, since__gt=since, stop__policy__isnull=False)
        .values_list("stop__policy", "currency")
        .annotate(Sum("amount"))
    )
    found: dict[int, dict[str, Decimal]] = {}
    for policy, currency, amount in sums:
        found.setdefault(policy, {})[currency] = amount
    return found
