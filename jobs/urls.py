"""Addresses of jobs. Those of a team lie under /t/<team>/."""

from __future__ import annotations

from django.urls import path

from jobs.api.tell import job_tell

urlpatterns = [path("jobs/v1/tell", job_tell, name="job_tell")]
