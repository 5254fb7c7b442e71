"""Addresses of jobs. Those of a team lie under /t/<team>/."""

from __future__ import annotations

from django.urls import path

from jobs.api.gateway import gateway_check, gateway_later, gateway_leave
from jobs.api.tell import job_tell
from jobs.pages import again, begin, gate, listing, loading, notebook, one, restarting, series, tail, taught

urlpatterns = [
    path("jobs/v1/tell", job_tell, name="job_tell"),
    path("gateway/v1/<str:name>/check", gateway_check, name="gateway_check"),
    path("gateway/v1/<str:name>/later/v1/<path:path>", gateway_leave, name="gateway_leave"),
    path("gateway/v1/<str:name>/later/<uuid:number>", gateway_later, name="gateway_later"),
]
team_urlpatterns = [
    path("jobs/", listing.jobs, name="jobs"),
    path("jobs/new/", begin.job_new, name="job_new"),
    path("jobs/taught/", taught.runs_taught, name="runs_taught"),
    path("jobs/taught/plan/", taught.plan_taught, name="plan_taught"),
    path("jobs/<int:pk>/", one.job, name="job"),
    path("jobs/<int:pk>/notebook/", notebook.job_notebook, name="job_notebook"),
    path("jobs/<int:pk>/gateway/", gate.job_gateway, name="job_gateway"),
    path("jobs/<int:pk>/gateway/token/", gate.job_gateway_token, name="job_gateway_token"),
    path("jobs/<int:pk>/load/", loading.job_load, name="job_load"),
    path("jobs/<int:pk>/load/cancel/", loading.job_load_cancel, name="job_load_cancel"),
    path("jobs/<int:pk>/stop/", one.job_stop, name="job_stop"),
    path("jobs/<int:pk>/restart/", restarting.job_restart, name="job_restart"),
    path("jobs/<int:pk>/log/<int:rank>/", one.job_log, name="job_log"),
    path("jobs/<int:pk>/log/<int:rank>/lines/", tail.job_lines, name="job_lines"),
    path("jobs/<int:pk>/again/", again.job_again, name="job_again"),
    path("jobs/<int:pk>/series/", series.job_series, name="job_series"),
    path("jobs/<int:pk>/trust/<int:rank>/", one.job_trust, name="job_trust"),
]
