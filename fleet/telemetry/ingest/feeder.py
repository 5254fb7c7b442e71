"""Whose readings a batch holds, as the write path needs it: an agent's machine, or one whose exporters are read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False, kw_only=True)
class Feeder:
    """`gpu_ids`: UUID -> id of every GPU ever seen on the machine. `has_…`: whose latest row is known to exist."""

    instance_id: int
    gpu_ids: dict[str, int]
    has_latest: set[int] = field(default_factory=set)
    has_host_latest: bool = False
    # GPUs that the inventory stopped naming: a later sample of one says that it is back.
    removed: set[int] = field(default_factory=set)
    # (engine, model, port) -> id of every serving endpoint that it is known to have.
    endpoints: dict[tuple[str, str, int], int] = field(default_factory=dict)
    gpu_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def forget_gpus(self) -> None:
        """Have everything about this machine read anew."""
        self.gpu_ids.clear()
        self.has_latest.clear()
        self.has_host_latest = False
        self.endpoints.clear()
