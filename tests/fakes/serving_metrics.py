"""The figures of a serving engine and its page of metrics, in the form of vLLM, TGI, TensorRT-LLM or Triton. Standard library only: it runs on machines."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FAST = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
BOUNDS = {
    "ttft": (*FAST, 160.0),
    "tpot": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.4, 0.8),
    "e2e": (0.01, 0.05, 0.1, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 120.0, 240.0, 480.0),
}


@dataclass
class Histogram:
    bounds: tuple[float, ...]
    total: float = 0.0
    counts: list[int] = field(default_factory=list)

    def observe(self, value: float, times: int = 1) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
        place = next((number for number, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[place] += times
        self.total += value * times

    def lines(self, name: str, labels: str) -> Iterator[str]:
        below, inside = 0, f"{labels}," if labels else ""
        braces = f"{{{labels}}}" if labels else ""
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*self.bounds, "+Inf"), self.counts or [0] * (len(self.bounds) + 1), strict=True):
            below += count
            yield f'{name}_bucket{{{inside}le="{bound}"}} {below}'
        yield f"{name}_count{braces} {below}"
        yield f"{name}_sum{braces} {self.total}"


@dataclass
class Metrics:
    """Of one engine with one model. `running`, `waiting`, `cache` are what they are now."""

    model: str = "org/tiny"
    running: int = 0
    waiting: int = 0
    cache: float = 0.0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    spent: Mapping[str, Histogram] = field(
        default_factory=lambda: {name: Histogram(bounds) for name, bounds in BOUNDS.items()}
    )
    lock: threading.Lock = field(default_factory=threading.Lock)

    def finish(
        self, *, ttft: float, tpot: float, prompt: int, generated: int, reason: str = "stop", times: int = 1
    ) -> None:
        """`reason`: stop, length, abort."""
        with self.lock:
            self.ended[reason] += times
            self.prompt_tokens += prompt * times
            self.generated_tokens += generated * times
            self.spent["ttft"].observe(ttft, times)
            self.spent["tpot"].observe(tpot, times)
            self.spent["e2e"].observe(ttft + tpot * max(0, generated - 1), times)

    def page(self, engine: str) -> str:
        with self.lock:
            return "\n".join([*PAGES[engine](self), ""])


def _vllm(m: Metrics) -> Iterator[str]:
    labels = f'engine="0",model_name="{m.model}"'
    yield "# TYPE vllm:num_requests_running gauge"
    yield f"vllm:num_requests_running{{{labels}}} {m.running}"
    yield f"vllm:num_requests_waiting{{{labels}}} {m.waiting}"
    yield f"vllm:kv_cache_usage_perc{{{labels}}} {m.cache}"
    yield f"vllm:prompt_tokens_total{{{labels}}} {m.prompt_tokens}"
    yield f"vllm:generation_tokens_total{{{labels}}} {m.generated_tokens}"
    for reason in ("stop", "length", "abort"):
        yield f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {m.ended[reason]}'
    yield from m.spent["ttft"].lines("vllm:time_to_first_token_seconds", labels)
    yield from m.spent["tpot"].lines("vllm:request_time_per_output_token_seconds", labels)
    yield from m.spent["e2e"].lines("vllm:e2e_request_latency_seconds", labels)


def _tgi(m: Metrics) -> Iterator[str]:
    well = m.ended.total() - m.ended["abort"]
    yield f"tgi_queue_size {m.waiting}"
    yield f"tgi_batch_current_size {m.running}"
    yield f"tgi_request_count {m.ended.total()}"
    yield f"tgi_request_success {well}"
    yield f'tgi_request_failure{{err="generation"}} {m.ended["abort"]}'
    yield f"tgi_request_input_length_sum {m.prompt_tokens}"
    yield f"tgi_request_generated_tokens_sum {m.generated_tokens}"
    yield from m.spent["tpot"].lines("tgi_request_mean_time_per_token_duration", "")
    yield from m.spent["e2e"].lines("tgi_request_duration", "")


def _trtllm(m: Metrics) -> Iterator[str]:
    labels = f'model_name="{m.model}",engine_type="trtllm"'
    yield f"trtllm_num_requests_running{{{labels}}} {m.running}"
    yield f"trtllm_num_requests_waiting{{{labels}}} {m.waiting}"
    yield f"trtllm_kv_cache_utilization{{{labels}}} {m.cache}"
    yield f"trtllm_prompt_tokens_total{{{labels}}} {m.prompt_tokens}"
    yield f"trtllm_generation_tokens_total{{{labels}}} {m.generated_tokens}"
    for reason in ("stop", "length"):
        yield f'trtllm_request_success_total{{{labels},finished_reason="{reason}"}} {m.ended[reason]}'
    yield f"trtllm_request_error_total{{{labels}}} {m.ended['abort']}"
    for name, ours in (
        ("time_to_first_token", "ttft"),
        ("time_per_output_token", "tpot"),
        ("e2e_request_latency", "e2e"),
    ):
        yield from m.spent[ours].lines(f"trtllm_{name}_seconds", labels)


def _triton(m: Metrics) -> Iterator[str]:
    model = f'model="{m.model}",version="1"'
    well = m.ended.total() - m.ended["abort"]
    yield "# TYPE nv_inference_request_success counter"
    yield f"nv_inference_request_success{{{model}}} {well}"
    yield f'nv_inference_request_failure{{{model},reason="BACKEND"}} {m.ended["abort"]}'
    yield f"nv_inference_request_duration_us{{{model}}} {1e6 * m.spent['e2e'].total}"
    for kind, count in (("scheduled", m.running), ("waiting", m.waiting)):
        yield f'nv_trt_llm_request_metrics{{{model},request_type="{kind}"}} {count}'
    yield f'nv_trt_llm_kv_cache_block_metrics{{{model},kv_cache_block_type="fraction"}} {m.cache}'


PAGES = {"vllm": _vllm, "tgi": _tgi, "trtllm": _trtllm, "triton": _triton}
