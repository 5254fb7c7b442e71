"""The REST API, version 1: every slice's resources under one address, their schema, and the page that explains them."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, include, path, re_path
from django.utils import translation
from django.utils.translation import gettext as _
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from fleet.alerts.api import alerts, answering, channels, escalation, routes, rules
from fleet.alerts.api import windows as maintenance
from fleet.costs.api import anomalies, forecasting, observations, rates, spending
from fleet.costs.attribution.api import rules as attribution_rules
from fleet.costs.attribution.api import sharing, spans
from fleet.costs.balances import api as balances
from fleet.costs.bills.api import bills, comparisons
from fleet.costs.budgets import api as budgets
from fleet.costs.charges import api as charges
from fleet.costs.exports.api import CostsExportView
from fleet.costs.rightsizing import api as right_sizing
from fleet.idle.dryrun.api import DryRunView
from fleet.idle.planned import api as planned_acts
from fleet.idle.policies.api import policies as idle_policies
from fleet.idle.policies.api import uses as machine_uses
from fleet.idle.savings import api as idle_savings
from fleet.idle.schedules import api as schedules
from fleet.idle.shutdown import api as idle_stops
from fleet.idle.watch.api import IdleVerdictViewSet
from fleet.inventory.api import (
    accounts,
    machines,
    offer_lists,
    offers,
    operations,
    plans,
    provider_words,
    records,
    runbooks,
    ssh_keys,
)
from fleet.pages.cleanup_api import CleanupView
from fleet.pages.plan_api import PlanView
from fleet.quality.acceptance import api as acceptance
from fleet.quality.health import api as health
from fleet.quality.neighbours import api as neighbours
from fleet.teams import api as teams
from fleet.teams.scoping import ApiView
from fleet.telemetry.api import latest, samples, serving, sources, targets, usage
from fleet.telemetry.api import records as telemetry_records
from fleet.telemetry.api.metrics import FleetMetricsView
from jobs.api import jobs, parts, uploads
from jobs.api.log import JobLogView

router = SimpleRouter()
router.register("teams", teams.TeamViewSet)
router.register("projects", teams.ProjectViewSet)
router.register("accounts", accounts.AccountViewSet)
router.register("images", accounts.ImageViewSet)
router.register("instances", machines.InstanceViewSet)
router.register("gpus", machines.GPUViewSet)
router.register("observations", records.ObservationViewSet)
router.register("provider-usage", provider_words.ProviderUsageViewSet)
router.register("provider-notices", provider_words.ProviderNoticeViewSet)
router.register("environments", records.EnvironmentViewSet)
router.register("runbooks", runbooks.RunbookViewSet)
router.register("holds", records.HoldViewSet)
router.register("operations", operations.OperationViewSet)
router.register("launch-blocks", plans.LaunchBlockViewSet)
router.register("planned-actions", planned_acts.PlannedActionViewSet)
router.register("power-schedules", schedules.PowerScheduleViewSet)
router.register("balances", balances.BalanceViewSet)
router.register("idle-stops", idle_stops.IdleStopViewSet)
router.register("idle-savings", idle_savings.IdleSavingViewSet)
router.register("budgets", budgets.BudgetViewSet)
router.register("attribution-rules", attribution_rules.AttributionRuleViewSet)
router.register("attribution-spans", spans.AttributionSpanViewSet)
router.register("reattributions", spans.ReattributionViewSet)
router.register("machine-splits", sharing.MachineSplitViewSet, basename="machine-splits")
router.register("unix-users", sharing.UnixUserViewSet)
router.register("idle-policies", idle_policies.IdlePolicyViewSet)
router.register("machine-uses", machine_uses.MachineUseViewSet, basename="machine-uses")
router.register("idle-verdicts", IdleVerdictViewSet, basename="idle-verdicts")
router.register("right-sizing", right_sizing.RightSizingViewSet)
router.register("offers", offers.OfferViewSet)
router.register("offer-sources", offer_lists.OfferSourceViewSet)
router.register("acceptance-reports", acceptance.AcceptanceReportViewSet)
router.register("provider-scores", offer_lists.ProviderScoreViewSet)
router.register("latest", latest.LatestViewSet, basename="latest")
router.register("serving", serving.ServingViewSet)
router.register("events", telemetry_records.EventViewSet)
router.register("agents", telemetry_records.AgentViewSet)
router.register("scrape-targets", targets.ScrapeTargetViewSet)
router.register("prometheus-sources", sources.SourceViewSet)
router.register("source-labels", sources.SourceLabelViewSet)
router.register("ssh-keys", ssh_keys.SshKeyViewSet)
router.register("alerts", alerts.AlertViewSet)
router.register("maintenance-windows", maintenance.WindowViewSet)
router.register("channels", channels.ChannelViewSet)
router.register("routes", routes.RouteViewSet)
router.register("deliveries", channels.DeliveryViewSet)
router.register("neighbour-evidence", neighbours.NeighbourEvidenceViewSet)
router.register("health-days", health.HealthDayViewSet)
router.register("exchange-rates", rates.ExchangeRateViewSet)
router.register("charges", charges.ChargeViewSet)
router.register("bills", bills.BillViewSet)
router.register("bill-lines", bills.BillLineViewSet)
router.register("reconciliations", comparisons.ReconciliationViewSet)
router.register("reconciliation-lines", comparisons.ReconciliationLineViewSet)
router.register("adjustments", comparisons.AdjustmentViewSet)
router.register("jobs", jobs.JobViewSet)
router.register("job-uploads", uploads.JobUploadViewSet)
router.register("audit", teams.AuditViewSet)


class RootView(ApiView):
    """Where to go from here."""

    schema = None

    def get(self, request: Request) -> Response:
        names = {prefix: f"{basename}-list" for prefix, _, basename in router.registry} | SINGLE_VIEWS
        return Response({word: reverse(name, request=request) for word, name in names.items()})


class NothingHere(APIView):
    """Any other address under /api/: JSON like the rest, not a page."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    schema = None

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(_("There is nothing at this address. Addresses of the API end with a slash; see /api/v1/docs/."))


# What the API can do is no secret: schema and docs are open, and hold nothing of any team.
class SchemaView(SpectacularAPIView):
    """The schema, in English whatever language is asked for: programs are made from it, and its names must not change."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    schema = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with translation.override("en"):
            answer: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]  # the library has no types
        return answer


class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI in our frame; its script is a file, so that the page needs no inline one."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = ()
    url_name = "api-schema"
    template_name = "api/docs.html"


SINGLE_VIEWS = {
    "me": "api-me",
    "samples/gpus": "api-gpu-samples",
    "samples/hosts": "api-host-samples",
    "samples/serving": "api-serving-samples",
    "usage": "api-usage",
    "alert-rules": "api-alert-rules",
    "alert-escalation": "api-alert-escalation",
    "answer-times": "api-answer-times",
    "cleanup": "api-cleanup",
    "anomaly-rules": "api-anomaly-rules",
    "costs": "api-costs",
    "costs/observations": "api-cost-observations",
    "costs/export": "api-costs-export",
    "costs/forecast": "api-costs-forecast",
    "metrics": "api-metrics",
    "plan": "api-plan",
    "schema": "api-schema",
    "docs": "api-docs",
}

api_urlpatterns: list[URLPattern | URLResolver] = [
    path("", RootView.as_view(), name="api-root"),
    path("me/", teams.MeView.as_view(), name="api-me"),
    path("samples/gpus/", samples.GpuSeriesView.as_view(), name="api-gpu-samples"),
    path("samples/hosts/", samples.HostSeriesView.as_view(), name="api-host-samples"),
    path("samples/serving/", serving.ServingSeriesView.as_view(), name="api-serving-samples"),
    path("usage/", usage.UsageView.as_view(), name="api-usage"),
    path("alert-rules/", rules.RulesView.as_view(), name="api-alert-rules"),
    path("alert-rules/<slug:kind>/", rules.RuleView.as_view(), name="api-alert-rule"),
    path("alert-rules/<slug:kind>/preview/", rules.RulePreviewView.as_view(), name="api-alert-rule-preview"),
    path("alert-escalation/", escalation.EscalationView.as_view(), name="api-alert-escalation"),
    path("answer-times/", answering.AnswerTimesView.as_view(), name="api-answer-times"),
    path("costs/observations.csv", observations.ObservationFileView.as_view(), name="api-cost-observations"),
    path("anomaly-rules/", anomalies.AnomalyRulesView.as_view(), name="api-anomaly-rules"),
    path("anomaly-rules/<slug:kind>/", anomalies.AnomalyRuleView.as_view(), name="api-anomaly-rule"),
    path("costs/", spending.SpendingView.as_view(), name="api-costs"),
    path("costs/export/", CostsExportView.as_view(), name="api-costs-export"),
    path(
        "idle-policies/<int:pk>/dry-run/", DryRunView.as_view({"get": "retrieve"}, detail=True), name="api-idle-dry-run"
    ),
    path("costs/forecast/", forecasting.ForecastView.as_view(), name="api-costs-forecast"),
    path("cleanup/", CleanupView.as_view(), name="api-cleanup"),
    path("metrics/", FleetMetricsView.as_view(), name="api-metrics"),
    path("plan/", PlanView.as_view(), name="api-plan"),
    path("jobs/<int:pk>/log/", JobLogView.as_view(), name="api-job-log"),
    path("jobs/<int:pk>/events/", parts.JobEventViewSet.as_view({"get": "list"}), name="api-job-events"),
    path("jobs/<int:pk>/points/", parts.JobPointViewSet.as_view({"get": "list"}), name="api-job-points"),
    path("jobs/<int:pk>/findings/", parts.JobFindingViewSet.as_view({"get": "list"}), name="api-job-findings"),
    path("schema/", SchemaView.as_view(), name="api-schema"),
    path("docs/", DocsView.as_view(), name="api-docs"),
    path("", include(router.urls)),
]
urlpatterns = [
    path("api/v1/", include(api_urlpatterns)),
    re_path(r"^api(/|$)", NothingHere.as_view()),
]
