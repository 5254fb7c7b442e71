"""The newest reading of every GPU, with what decides whether the GPU may be idle. Plain rows: ten thousand model instances would take longer than all the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import connection
from msgspec import Struct

from fleet.states import DEFAULTS


class GpuRow(Struct, frozen=True, gc=False):
    """A GPU and its latest reading; `sampled_at` None: it never had one. `floor_watts`: of an empty one, `held_watts`: with memory in use."""

    pk: int
    uuid: str
    index: int
    parent_uuid: str
    sampled_at: datetime | None
    worked_at: datetime | None
    idle_since: datetime | None
    lost: bool | None
    utilization_percent: float | None
    sm_activity: float | None
    tensor_activity: float | None
    dram_activity: float | None
    power_watts: float | None
    power_limit_watts: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    process_count: int | None
    floor_watts: float | None
    held_watts: float | None

    @property
    def holds_memory(self) -> bool:
        """More than driver and context leave in use."""
        return self.memory_used_bytes is not None and self.memory_used_bytes >= DEFAULTS.held_memory_bytes

    @property
    def rests(self) -> tuple[datetime, datetime] | None:
        """Since when until when it rests without a gap, by what telemetry calls work."""
        return (self.idle_since, self.sampled_at) if self.idle_since and self.sampled_at and not self.lost else None

    @property
    def rest_watts(self) -> float | None:
        """What it draws while it does nothing, as it is now."""
        return self.held_watts if self.holds_memory and self.held_watts is not None else self.floor_watts


class Card(Struct, frozen=True, gc=False):
    """What is judged by itself: a GPU, or a MIG instance with the card that it is a part of. Only whole cards tell power."""

    gpu: GpuRow
    whole: GpuRow

    @property
    def lost(self) -> bool:
        return bool(self.gpu.lost or self.whole.lost)


class Cards(Struct, frozen=True, gc=False):
    """`reported`: cards, of which there may be fewer than are judged."""

    judged: Sequence[Card]
    reported: int

    def expected(self, rented: int | None) -> int | None:
        """How many would be judged if all of the rented cards reported; None: nobody knows how many are rented."""
        return None if rented is None else len(self.judged) + rented - self.reported


NONE = Cards((), 0)

# Moments as numbers: turning text into aware datetimes would be a third of the reading.
_ROWS = """\
SELECT gpu.instance_id, gpu.id, gpu.uuid, gpu.index, gpu.mig_parent_uuid,
    extract(epoch FROM latest.sampled_at)::float8, extract(epoch FROM latest.busy_at)::float8, extract(epoch FROM latest.idle_since)::float8, latest.lost,
    latest.utilization_percent, latest.sm_activity, latest.tensor_activity, latest.dram_activity, latest.power_watts,
    latest.power_limit_watts, latest.memory_used_bytes, coalesce(latest.memory_total_bytes, gpu.memory_total_bytes), latest.process_count, floor.watts, floor.held_watts
FROM fleet_gpu gpu LEFT JOIN gpu_latest latest ON latest.gpu_id = gpu.id LEFT JOIN gpu_floor floor ON floor.gpu_id = gpu.id
WHERE gpu.instance_id = ANY(%s) AND gpu.removed_at IS NULL ORDER BY gpu.instance_id, gpu.index, gpu.id
"""


def cards_of(instance_ids: Sequence[int]) -> dict[int, Cards]:
    """By machine. One query."""
    rows: dict[int, list[GpuRow]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [list(instance_ids)])
        for instance_id, pk, uuid, index, parent, sampled, worked, idle, *rest in cursor:
            moments = (_moment(sampled), _moment(worked), _moment(idle))
            rows[instance_id].append(GpuRow(pk, uuid, index, parent, *moments, *rest))
    return {instance_id: _cards(gpus) for instance_id, gpus in rows.items()}


def _cards(gpus: Sequence[GpuRow]) -> Cards:
    """A card that is cut into MIG instances reports no utilization of its own: its instances stand for it."""
    whole = {gpu.uuid: gpu for gpu in gpus}
    cut = {gpu.parent_uuid for gpu in gpus if gpu.parent_uuid}
    judged = [Card(gpu, whole.get(gpu.parent_uuid, gpu)) for gpu in gpus if gpu.uuid not in cut]
    return Cards(judged, len({gpu.parent_uuid or gpu.uuid for gpu in gpus}))


def _moment(epoch: float | None) -> datetime | None:
    return None if epoch is None else datetime.fromtimestamp(epoch, UTC)
