"""Endpoints as pages show them: their newest readings as rates, how old, and when they last had a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.inventory.models import Instance
from fleet.telemetry.serving.models import ServingLatest

# An endpoint that said nothing for so long is not shown with its machine any more; its past stays.
SHOWN_FOR = timedelta(days=7)
ENGINES = {"vllm": "vLLM", "tgi": "TGI", "trtllm": "TensorRT-LLM", "triton": "Triton"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row, with figures for people. None = not known."""

    latest: ServingLatest
    label: str

    @property
    def engine(self) -> str:
        return ENGINES.get(self.latest.engine, self.latest.engine)

    @property
    def requests_per_second(self) -> float | None:
        return self._rate(self.latest.requests_finished)

    @property
    def tokens_per_second(self) -> float | None:
        return self._rate(self.latest.generation_tokens)

    @property
    def cache_percent(self) -> float | None:
        ratio = self.latest.kv_cache_ratio
        return None if ratio is None else 100 * ratio

    def _rate(self, grown: float | None) -> float | None:
        seconds = self.latest.interval_seconds
        return grown / seconds if grown is not None and seconds else None


def endpoints_of(instance: Instance, *, now: datetime) -> list[Endpoint]:
    """Those that reported lately, busiest first: by their last request, then by name."""
    found = ServingLatest.objects.filter(instance=instance, sampled_at__gt=now - SHOWN_FOR)
    rows = sorted(found, key=lambda row: (-row.last_request_at.timestamp() if row.last_request_at else 0, row.model))
    return [Endpoint(row, label) for row, label in zip(rows, labels(rows), strict=True)]


def labels(rows: list[ServingLatest]) -> list[str]:
    """Short names that tell the endpoints of one machine apart: the end of the model's path, and the port where two share it."""
    short = [row.model.rstrip("/").rpartition("/")[2] or ENGINES.get(row.engine, row.engine) for row in rows]
    return [f"{name} :{row.port}" if short.count(name) > 1 else name for name, row in zip(short, rows, strict=True)]
