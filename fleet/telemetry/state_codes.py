"""How the seven states are stored: a code in every GPU sample, a column of seconds in every rollup."""

from __future__ import annotations

from fleet.states import GpuState

# Rows outlive releases: numbers are added, never changed.
STATE_CODES: dict[GpuState, int] = {
    GpuState.WORKING: 1,
    GpuState.HELD_IDLE: 2,
    GpuState.FREE: 3,
    GpuState.STARVED: 4,
    GpuState.STALLED: 5,
    GpuState.UNKNOWN: 6,
    GpuState.STOPPED: 7,
}
STATES_BY_CODE: dict[int, GpuState] = {code: state for state, code in STATE_CODES.items()}
SECONDS_COLUMNS: dict[GpuState, str] = {state: f"{state.value}_seconds" for state in GpuState}
