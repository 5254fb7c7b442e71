from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.telemetry.models import Agent, GpuLatest, HostLatest

GIB = 1 << 30
WORKING = {"utilization_percent": 97.0, "memory_used_bytes": 60 * GIB, "sm_activity": 0.8}
HELD = {"utilization_percent": 0.0, "memory_used_bytes": 54 * GIB, "process_count": 1}
FREE = {"utilization_percent": 0.0, "memory_used_bytes": GIB // 4, "process_count": 0}
STALLED = {"utilization_percent": 100.0, "memory_used_bytes": 60 * GIB, "sm_activity": 0.003}


@pytest.fixture
def make_machine(make_instance):
    """make_machine(name="train-01", readings=[WORKING, HELD]) reports one GPU a reading; `seconds` is how long ago."""

    def make(*, name="train-01", readings=(), seconds=5, price="8.00", host=None, lost=(), agent=None, **fields):
        fields.setdefault("price_per_hour", None if price is None else Decimal(price))
        instance = make_instance(name=name, gpus=len(readings), priced_at=timezone.now(), **fields)
        at = timezone.now() - timedelta(seconds=seconds)
        Agent.objects.create(
            instance=instance,
            token_hash=f"hash-{instance.pk}",
            prefix="rra_",
            heartbeat_at=at,
            batch_at=at,
            **(agent or {}),
        )
        HostLatest.objects.create(instance=instance, sampled_at=at, received_at=at, **(host or {}))
        for gpu, reading in zip(instance.gpus.order_by("index"), readings, strict=True):
            GpuLatest.objects.create(
                gpu=gpu, sampled_at=at, received_at=at, memory_total_bytes=80 * GIB, lost=gpu.index in lost, **reading
            )
        return instance

    return make
