"""GPUs whose driver slows them, for heat or for power. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.diagnosis.evidence import Evidence, GpuEvidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies

# A cap of power is how a GPU is meant to run at full load; heat never is.
HOT_SHARE, CAPPED_SHARE = 0.1, 0.9
# Below what its model is rated for: then the host, not the chip, sets it.
LOW_SHARE = 0.85


def look(evidence: Evidence) -> Iterator[Finding]:
    hot = [gpu for gpu in evidence.gpus if gpu.hot is not None and gpu.hot >= HOT_SHARE]
    if hot:
        because = (Reason("hot", {"share": round(max(gpu.hot or 0.0 for gpu in hot), 2)}),)
        what = remedies("tell_provider", "lower_power_limit", "other_machine")
        yield Finding("throttled_heat", Sure.CERTAIN, because, what, gpus=_indexes(hot))
    capped = [gpu for gpu in evidence.gpus if gpu.capped is not None and gpu.capped >= CAPPED_SHARE and _is_low(gpu)]
    if capped:
        share, watts = max(gpu.capped or 0.0 for gpu in capped), capped[0].power_limit_watts or 0
        because = (Reason("capped", {"share": round(share, 2), "watts": watts}),)
        what = remedies("ask_power_limit", "other_machine")
        yield Finding("throttled_power", Sure.LIKELY, because, what, gpus=_indexes(capped))


def _is_low(gpu: GpuEvidence) -> bool:
    limit, rated = gpu.power_limit_watts, gpu.rated_watts
    return limit is not None and rated is not None and limit < LOW_SHARE * rated


def _indexes(gpus: Sequence[GpuEvidence]) -> tuple[int, ...]:
    return tuple(gpu.index for gpu in gpus)
