"""What a job cost, and what it came to beside its plan, as the API says it. Figures are decimals as text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from jobs.book.models import Job
from jobs.learning.keep import compared
from jobs.learning.measures import Compared, Measure, Missing
from jobs.spending.cost import JobCost, cost_of_job

CENT_OF_CENT = Decimal("0.0001")


class JobCostSerializer(serializers.Serializer[JobCost]):
    """Of all attempts so far."""

    amount = serializers.CharField()
    currency = serializers.CharField()
    per_hour = serializers.CharField(allow_null=True, help_text="Now; null: it has ended, or nobody knows.")
    heads_for = serializers.CharField(
        allow_null=True, help_text="What it will have cost at its end; null: nothing tells."
    )
    others = serializers.DictField(
        child=serializers.CharField(), help_text="In currencies without a rate, beside the amount."
    )
    is_floor = serializers.BooleanField(help_text="It is at least so much: a price or a rate is not known.")


class ComparedSerializer(serializers.Serializer[Compared]):
    measure = serializers.ChoiceField(choices=[measure.value for measure in Measure])
    planned = serializers.CharField(allow_null=True)
    measured = serializers.CharField(allow_null=True)
    ratio = serializers.CharField(allow_null=True, help_text="Measured by planned, where they can be compared.")
    missing = serializers.ChoiceField(
        choices=[missing.value for missing in Missing], help_text="Why they cannot; empty: they can."
    )


def cost_said(job: Job) -> dict[str, Any]:
    cost = cost_of_job(job, timezone.now())
    return {
        "amount": _said(cost.amount),
        "currency": cost.currency,
        "per_hour": _said(cost.per_hour),
        "heads_for": _said(cost.heads_for),
        "others": {currency: _said(amount) for currency, amount in cost.others.items()},
        "is_floor": cost.is_floor,
    }


def compared_said(job: Job) -> list[dict[str, Any]]:
    """Of the newest attempt."""
    newest = max(job.attempts.all(), key=lambda attempt: attempt.number, default=None)
    if newest is None or newest.started_at is None:
        return []
    newest.job = job
    return [
        {
            "measure": one.measure.value,
            "planned": _plain(one.predicted),
            "measured": _plain(one.measured),
            "ratio": _said(one.ratio),
            "missing": one.missing.value,
        }
        for one in compared(newest, now=timezone.now())
    ]


def _said(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount.quantize(CENT_OF_CENT))


def _plain(figure: Decimal | None) -> str | None:
    return None if figure is None else f"{figure.normalize():f}"
