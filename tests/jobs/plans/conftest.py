from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.utils import timezone

from fleet.inventory.models import EnvironmentReport
from tests.jobs.plans.test_drafts import ONE
from tests.planner.launchers.conftest import launchers_python, tiny

__all__ = ["launchers_python", "tiny"]

PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


def new_job(plan: str = ONE, launcher: str = "torchrun", team: str = "acme") -> str:
    return f"/t/{team}/jobs/new/?{urlencode({'plan': plan, 'launcher': launcher})}"


@pytest.fixture
def make_machine(make_instance):
    """make_machine("a", "L40S", 2) runs and can be reached over SSH."""

    def make(name: str, gpu_model: str = "L40S", gpus: int = 2, *, driver: str = "", **more):
        fields = {"managed": True, "ssh": PLACE, "gpu_model": gpu_model} | more
        machine = make_instance(name=name, gpus=gpus, **fields)
        if driver:
            EnvironmentReport.objects.create(
                instance=machine, reported_at=timezone.now(), digest="1", data={"driver": driver}
            )
        return machine

    return make
