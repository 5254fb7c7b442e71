"""A dry run of an idle policy over the API: what its page shows, with every stop."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.idle.dryrun.dry_run import Counted, DryRun, ground_of, try_window
from fleet.idle.dryrun.forms import COSTS, DAYS, LONGEST_MINUTES, SHORTEST_MINUTES, Asked, DryRunForm
from fleet.idle.dryrun.quiet import Ending
from fleet.idle.dryrun.shown import kept_advice
from fleet.idle.dryrun.simulate import Judged
from fleet.idle.dryrun.words import advice_text
from fleet.idle.policies.covering import window_of
from fleet.idle.policies.models import IdlePolicy
from fleet.teams.scoping import TeamRows
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle

STOP_EXAMPLE = {
    "instance": 17,
    "quiet_since": "2026-11-28T00:15:00Z",
    "stopped_at": "2026-11-28T04:25:00Z",
    "until": "2026-11-28T04:50:00Z",
    "ending": "return",
    "verdict": "wrong",
    "run": "vid-ft-88",
    "gpu_hours": 3.3,
    "saved": "9.13",
    "harm": "6.59",
}
EXAMPLE = {
    "policy": 3,
    "since": "2026-10-31T18:00:00Z",
    "until": "2026-11-30T18:00:00Z",
    "window_minutes": 220,
    "grace_minutes": 30,
    "wrong_stop_gpu_hours": None,
    "restart_minutes": 20,
    "machines": [17, 18],
    "left_out": [],
    "idle_gpu_hours": 1114.2,
    "stops": 9,
    "wrong_stops": 1,
    "unclear_stops": 0,
    "asked": 14,
    "gpu_hours": 617.7,
    "currency": "USD",
    "saved": "1372.71",
    "harm": "6.59",
    "net": "1366.12",
    "unpriced": 0,
    "each": [STOP_EXAMPLE],
    "recommendation": {
        "minutes": 95,
        "why": "",
        "says": "After 95 quiet minutes. On the 9 days that it did not learn from it would have given back 41 of 57 GPU-hours and hit no run.",
        "learned_days": 21,
        "unseen_days": 9,
        "stops": 4,
        "wrong": 0,
        "back": 41.2,
        "net": 41.2,
        "idle": 57.0,
        "interval": [22.4, 58.1],
        "machines_net": 80.3,
        "own": {"18": {"minutes": 45, "net": 9.5, "group_net": 7.0}},
    },
}


def cents(help_text: str, *, allow_null: bool = False) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=20, decimal_places=2, allow_null=allow_null, help_text=help_text)


class DryStopSerializer(serializers.Serializer[Any]):
    instance = serializers.IntegerField(help_text="A machine's id.")
    quiet_since = serializers.DateTimeField()
    stopped_at = serializers.DateTimeField(help_text="When it would have been stopped.")
    until = serializers.DateTimeField(help_text="When it would have been off no more, or as far as is known.")
    ending = serializers.ChoiceField(
        choices=[one.value for one in Ending],
        help_text="Work returned; it was switched off; nobody knows what came; or it goes on.",
    )
    verdict = serializers.ChoiceField(
        choices=[one.value for one in Judged],
        help_text="wrong: work returned within 30 min; unclear: nobody knows whether it did.",
    )
    run = serializers.CharField(help_text="The job that a wrong stop would have hit; empty: none is known by name.")
    gpu_hours = serializers.FloatField()
    saved = cents("null: a price or a rate is not known.", allow_null=True)
    harm = cents("What a wrong stop costs; null: not known.", allow_null=True)


class DryRecommendationSerializer(serializers.Serializer[Any]):
    """Learned from the earlier days, its figures are of the later ones, in GPU-hours."""

    minutes = serializers.IntegerField(allow_null=True, help_text="null: better not to stop, see `why`.")
    why = serializers.CharField()
    says = serializers.CharField(help_text="In the language asked for.")
    learned_days = serializers.IntegerField()
    unseen_days = serializers.IntegerField()
    stops = serializers.IntegerField()
    wrong = serializers.IntegerField()
    back = serializers.FloatField()
    net = serializers.FloatField(help_text="`back` less what wrong stops cost.")
    idle = serializers.FloatField()
    interval = serializers.ListField(child=serializers.FloatField(), help_text="90% of `net`, resampled.")
    machines_net = serializers.FloatField(
        allow_null=True, help_text="What each half of the machines taught, on the other; null: too few machines."
    )
    own = serializers.DictField(help_text="By machine's id: whose own window did better on unseen days.")


@extend_schema_serializer(examples=[OpenApiExample("a month", EXAMPLE)])
class DryRunSerializer(serializers.Serializer[Any]):
    policy = serializers.IntegerField(help_text="Its id.")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="As far as readings are summed by five minutes.")
    window_minutes = serializers.IntegerField()
    grace_minutes = serializers.IntegerField()
    wrong_stop_gpu_hours = serializers.FloatField(allow_null=True, help_text="null: restart_minutes of all its GPUs.")
    restart_minutes = serializers.FloatField()
    machines = serializers.ListField(
        child=serializers.IntegerField(), help_text="Ids of machines that it was tried on."
    )
    left_out = serializers.ListField(
        child=serializers.IntegerField(), help_text="Covered, and never stopped: they cannot be, or would lose data."
    )
    idle_gpu_hours = serializers.FloatField(help_text="With all of a machine idle.")
    stops = serializers.IntegerField()
    wrong_stops = serializers.IntegerField()
    unclear_stops = serializers.IntegerField()
    asked = serializers.IntegerField(help_text="Idle in office hours: told instead.")
    gpu_hours = serializers.FloatField(help_text="Given back.")
    currency = serializers.CharField()
    saved = cents("Of the stops whose price is known, less what stopped machines cost.")
    harm = cents("What wrong stops cost.")
    net = cents("`saved` less `harm`.")
    unpriced = serializers.IntegerField(help_text="Stops whose price is not known.")
    each = DryStopSerializer(many=True)
    recommendation = DryRecommendationSerializer()


class DryRunView(TeamRows[IdlePolicy]):
    """What a policy would have stopped over the last days, and the window that history recommends for it. Stops nothing."""

    http_method_names = ["get", "head", "options"]
    queryset = IdlePolicy.objects.filter(removed_at=None).select_related("team", "project", "account")
    serializer_class = DryRunSerializer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    known_parameters = ("window", "days", "cost", "gpu_hours")

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "window", int, description=f"Minutes, {SHORTEST_MINUTES} to {LONGEST_MINUTES}; the policy's."
            ),
            OpenApiParameter("days", int, enum=DAYS, description="So many back from now; 30."),
            OpenApiParameter("cost", enum=list(COSTS), description="What a wrong stop costs; as the policy says."),
            OpenApiParameter("gpu_hours", float, description="Of a wrong stop, with cost=own."),
        ]
    )
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        policy = self.get_object()
        form = DryRunForm(request.query_params)
        if not form.is_valid():
            raise ValidationError({name: [str(error) for error in errors] for name, errors in form.errors.items()})
        asked = Asked.of(policy, form.cleaned_data)
        ground = ground_of(policy=policy, days=asked.days, now=timezone.now(), cost=asked.cost)
        shown = try_window(ground, asked.window or window_of(policy))
        return Response(DryRunSerializer(told(policy, shown, kept_advice(ground, asked.days))).data)


def told(policy: IdlePolicy, shown: DryRun, advice: dict[str, Any]) -> dict[str, Any]:
    ground, totals = shown.ground, shown.totals
    return {
        "policy": policy.pk,
        "since": ground.span.since,
        "until": ground.span.until,
        "window_minutes": round(shown.window.total_seconds() / 60),
        "grace_minutes": policy.grace_minutes,
        "wrong_stop_gpu_hours": ground.cost.gpu_hours,
        "restart_minutes": ground.cost.restart_minutes,
        "machines": sorted(ground.machines),
        "left_out": sorted(machine.pk for machine in ground.spared),
        "idle_gpu_hours": round(ground.idle_gpu_hours, 1),
        "stops": totals.stops,
        "wrong_stops": totals.wrong,
        "unclear_stops": totals.unclear,
        "asked": len(shown.asked),
        "gpu_hours": round(totals.gpu_hours, 1),
        "currency": ground.rates.currency,
        "saved": totals.saved,
        "harm": totals.harm,
        "net": totals.net,
        "unpriced": totals.unpriced,
        "each": [stop_told(one) for one in shown.stops],
        "recommendation": {**advice, "says": advice_text(advice)},
    }


def stop_told(one: Counted) -> dict[str, Any]:
    stop = one.stop
    return {
        "instance": stop.instance_id,
        "quiet_since": stop.quiet_since,
        "stopped_at": stop.at,
        "until": stop.until,
        "ending": stop.ending.value,
        "verdict": stop.judged.value,
        "run": stop.run,
        "gpu_hours": round(stop.gpu_hours, 1),
        "saved": one.money.saved,
        "harm": one.money.harm,
    }
