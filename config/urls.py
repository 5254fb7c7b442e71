from __future__ import annotations

from django.urls import include, path

from config import api
from fleet.alerts import urls as alerts
from fleet.alerts.channels import urls as channels
from fleet.costs.anomalies import urls as anomalies
from fleet.costs.attribution import urls as attribution
from fleet.costs.balances import urls as balances
from fleet.costs.bills import urls as bills
from fleet.costs.budgets import urls as budgets
from fleet.costs.charges import urls as charges
from fleet.costs.exports import urls as cost_exports
from fleet.costs.rates import urls as costs_rates
from fleet.costs.reports import urls as cost_reports
from fleet.costs.rightsizing import urls as right_sizing
from fleet.idle.dryrun import urls as dry_runs
from fleet.idle.planned import urls as planned_acts
from fleet.idle.policies import urls as idle_policies
from fleet.idle.schedules import urls as schedules
from fleet.inventory import urls as inventory
from fleet.pages import urls as pages
from fleet.quality.acceptance import urls as acceptance
from fleet.teams import urls as teams
from fleet.telemetry import urls as telemetry
from jobs import urls as jobs

team_urlpatterns = [
    *acceptance.team_urlpatterns,
    *alerts.team_urlpatterns,
    *bills.team_urlpatterns,
    *attribution.team_urlpatterns,
    *channels.team_urlpatterns,
    *anomalies.team_urlpatterns,
    *cost_exports.team_urlpatterns,
    *costs_rates.team_urlpatterns,
    *balances.team_urlpatterns,
    *budgets.team_urlpatterns,
    *charges.team_urlpatterns,
    *cost_reports.team_urlpatterns,
    *dry_runs.team_urlpatterns,
    *idle_policies.team_urlpatterns,
    *inventory.team_urlpatterns,
    *jobs.team_urlpatterns,
    *pages.team_urlpatterns,
    *right_sizing.team_urlpatterns,
    *planned_acts.team_urlpatterns,
    *schedules.team_urlpatterns,
    *teams.team_urlpatterns,
    *telemetry.team_urlpatterns,
]

urlpatterns = [
    path("t/<slug:team_slug>/", include(team_urlpatterns)),
    *api.urlpatterns,
    *teams.urlpatterns,
    *channels.urlpatterns,
    *jobs.urlpatterns,
]

handler400 = "fleet.teams.views.errors.bad_request"
handler403 = "fleet.teams.views.errors.forbidden"
