"""What a run was launched with: as the plan says, else as its command or its log does. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.diagnosis.evidence import Evidence
from jobs.progress.numbers import NUMBER, number

# Of a log, where a program prints its settings as it begins.
HEAD_LINES = 400
_AFTER = rf"[\"']?(?:\s*[=:]\s*|\s+)[\"']?({NUMBER})(?![\w.])"
_NAMES: Mapping[str, str] = {
    "batch_size": r"(?:per_device_train_batch_size|train_micro_batch_size_per_gpu|micro[_-]batch[_-]size|Instantaneous batch size per device)",
    "gpu_memory_utilization": r"(?:gpu[_-]memory[_-]utilization|mem[_-]fraction[_-]static|free_gpu_memory_fraction|kv_cache_free_gpu_mem_fraction)",
    "max_num_seqs": r"(?:max[_-]num[_-]seqs|max[_-]running[_-]requests|max_batch_size)",
    "max_num_batched_tokens": r"(?:max[_-]num[_-]batched[_-]tokens|chunked[_-]prefill[_-]size|max[_-]batch[_-]prefill[_-]tokens)",
    "max_model_len": r"(?:max[_-]model[_-]len|context[_-]length|max_seq_len)",
}
_PATTERNS = {name: re.compile(rf"\b{words}{_AFTER}") for name, words in _NAMES.items()}


def setting(evidence: Evidence, name: str) -> float | None:
    """By the planner's name. None where nobody says it."""
    if name in evidence.settings:
        return evidence.settings[name]
    pattern = _PATTERNS[name]
    for text in (evidence.command, *(line.text for line in evidence.lines[:HEAD_LINES])):
        if (found := pattern.search(text)) is not None:
            return number(found[1])
    return None
