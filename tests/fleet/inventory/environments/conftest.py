"""An image, a machine that runs it, and what its agent found there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.inventory.models import EnvironmentReport, Image, Instance
from fleet.teams.audit import Actor

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FOUND = {
    "driver": "570.124.06",
    "cudnn": "9.10.2",
    "nccl": "2.27.3",
    "python": "3.11.11",
    "container": "docker",
    "frameworks": {"torch": "2.8.0+cu128", "vllm": "0.11.0", "flash_attn": "2.8.3"},
}


@pytest.fixture
def by_bob(bob) -> Actor:
    return Actor(bob, "bob", "page")


@pytest.fixture
def image(account) -> Image:
    return Image.objects.create(account=account, external_id="img-1", name="vision 2.4", created_at=NOON)


@pytest.fixture
def machine(make_instance, image) -> Instance:
    found: Instance = make_instance(name="train-01", gpus=2, gpu_model="H100 SXM", image=image)
    return found


@pytest.fixture
def report():
    """report(machine, driver="…") is what its agent found, at noon or `minutes` later."""

    def find(machine: Instance, *, minutes: int = 0, **differing: object) -> EnvironmentReport:
        at = NOON + timedelta(minutes=minutes)
        return EnvironmentReport.objects.create(
            instance=machine, reported_at=at, digest=str(minutes), data={**FOUND, **differing}
        )

    return find
