"""GPUs whose driver slows them, for heat or for power. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure

# A cap of power is how a GPU is meant to run at full load; heat never is.
HOT_SHARE, CAPPED_SHARE = 0.1, 0.9


def look(evidence: Evidence) -> Iterator[Finding]:
    hot = [gpu for gpu in evidence.gpus if gpu.hot is not None and gpu.hot >= HOT_SHARE]
    if hot:
        because = (Reason("hot", {"share": round(max(gpu.hot or 0.0 for gpu in hot), 2)}),)
        yield Finding(
            "throttled_heat",
            Sure.CERTAIN,
            because,
            (Remedy("tell_provider"), Remedy("lower_power_limit"), Remedy("other_machine")),
            gpus=tuple(gpu.index for gpu in hot),
        )
    capped = [
        gpu
        for gpu in evidence.gpus
        if gpu.capped is not None and gpu.capped >= CAPPED_SHARE and _low_limit(gpu.power_limit_watts, evidence)
    ]
    if capped:
        because = (
            Reason(
                "capped",
                {
                    "share": round(max(gpu.capped or 0.0 for gpu in capped), 2),
                    "watts": capped[0].power_limit_watts or 0,
                },
            ),
        )
        yield Finding(
            "throttled_power",
            Sure.LIKELY,
            because,
            (Remedy("ask_power_limit"), Remedy("other_machine")),
            gpus=tuple(gpu.index for gpu in capped),
        )


def _low_limit(watts: float | None, evidence: Evidence) -> bool:
    """Below what this model is rated for: then the host, not the chip, sets it."""
    rated = evidence.settings.get("rated_watts")
    return watts is not None and rated is not None and watts < 0.85 * rated
