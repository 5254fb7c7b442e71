/* What the browser must know of the seven states: which one names a machine, and when silence makes it unknown. */

/* fleet/states.py says the same: the order of `worst`, and Thresholds.stale_after. */
/* The order in which they are listed everywhere. */
export const STATES = ["working", "held", "free", "starved", "stalled", "unknown", "stopped"];
const WORST_FIRST = ["stalled", "held", "starved", "unknown", "free", "working", "stopped"];
const STALE_SECONDS = 30;

/** After how many seconds without a reading the GPUs of this element's machine are unknown: longer for agents that report seldom. */
export const staleAfter = (element) => Number(element.closest("[data-stale]")?.dataset.stale ?? STALE_SECONDS);

/** The newest sample that read GPUs: while a driver hangs, machines report themselves alone. */
export const newestOfGpus = (samples) => samples?.findLast(({ gpus }) => gpus && Object.keys(gpus).length > 0);

export const worst = (states) => WORST_FIRST.find((state) => states.includes(state)) ?? "unknown";

/** Whether a figure means anything in this state. */
export const speaks = (state) => state !== "unknown" && state !== "stopped";
