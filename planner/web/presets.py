"""Plans to begin with, as the queries of their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from planner.web.inputs import PlanInput
from planner.web.query import query_of
from planner.web.words.terms import PRESETS as WORDS

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "lora-7b": {"model": "Qwen/Qwen2.5-7B", "gpu": "rtx-4090-24", "sequence_length": 1024, "samples": 10_000},
    "qlora-8b": {"method": "qlora", "model": "meta-llama/Meta-Llama-3.1-8B", "samples": 5_000},
    "full-13b": {"method": "full", "model": "meta-llama/Llama-2-13b-hf", "samples": 50_000},
    "full-70b": {
        "method": "full",
        "model": "meta-llama/Meta-Llama-3.1-70B",
        "samples": 100_000,
        "sequence_length": 4096,
    },
    "long-context": {
        "model": "meta-llama/Meta-Llama-3.1-8B",
        "method": "full",
        "sequence_length": 65_536,
        "tokens_per_sample": 50_000,
    },
    "serve-8b": {"work": "serving", "model": "meta-llama/Meta-Llama-3.1-8B", "concurrency": 8},
    "serve-70b": {
        "work": "serving",
        "model": "meta-llama/Meta-Llama-3.1-70B",
        "concurrency": 32,
        "prompt_tokens": 2000,
    },
    "serve-moe": {"work": "serving", "model": "Qwen/Qwen3-30B-A3B", "concurrency": 32},
}


@cache
def preset_queries() -> Mapping[str, str]:
    return {key: _query(preset) for key, preset in PRESETS.items()}


def _query(preset: Mapping[str, Any]) -> str:
    asked = PlanInput(data=preset)
    asked.is_valid(raise_exception=True)
    return query_of(asked.validated_data)


def preset_links(current: str) -> list[dict[str, Any]]:
    """Each with its name, its query and whether it is what the page shows."""
    return [
        {"name": WORDS[key], "query": query, "is_current": query == current} for key, query in preset_queries().items()
    ]
