"""What each serving engine calls its figures on its page of metrics. Pure. The agent, which is a program of its own, has the same names in its own way.

vLLM: docs/design/metrics.md (0.6 to 0.12). Text Generation Inference: docs/source/reference/metrics.md (1 to 3).
TensorRT-LLM's trtllm-serve: tensorrt_llm/metrics/collector.py (1.x). Triton: docs/user_guide/metrics.md (23.11 on).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# A series by its name, or of it only what has one of these values of a label: ("name",) or ("name", "label", "value", …).
Series = tuple[str, ...]
_ENDED_BADLY = ("finished_reason", "abort", "error", "cancelled", "timeout")


@dataclass(frozen=True, slots=True)
class Engine:
    """`gauges`, `latencies`: the first of the names that is there counts. `counters`: all of them are added up.

    `latencies`: a histogram's name and what makes seconds of its unit. `spent`: latencies that are counters: of the time, and of requests.
    """

    path: str
    model_label: str
    gauges: Mapping[str, tuple[Series, ...]]
    counters: Mapping[str, tuple[Series, ...]]
    latencies: Mapping[str, tuple[tuple[str, float], ...]]
    spent: Mapping[str, tuple[str, str, float]] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        plain = {one[0] for group in (*self.gauges.values(), *self.counters.values()) for one in group}
        histograms = {
            f"{name}_{part}"
            for group in self.latencies.values()
            for name, _factor in group
            for part in ("sum", "count", "bucket")
        }
        return frozenset(plain | histograms | {name for pair in self.spent.values() for name in pair[:2]})


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine(
        path="/metrics",
        model_label="model_name",
        gauges={
            "requests_running": (("vllm:num_requests_running",),),
            "requests_waiting": (("vllm:num_requests_waiting",),),
            "kv_cache_ratio": (("vllm:kv_cache_usage_perc",), ("vllm:gpu_cache_usage_perc",)),
        },
        counters={
            "requests_finished": (("vllm:request_success_total",),),
            "requests_failed": (("vllm:request_success_total", *_ENDED_BADLY),),
            "prompt_tokens": (("vllm:prompt_tokens_total",),),
            "generation_tokens": (("vllm:generation_tokens_total",),),
        },
        latencies={
            "ttft": (("vllm:time_to_first_token_seconds", 1.0),),
            "tpot": (
                ("vllm:request_time_per_output_token_seconds", 1.0),
                ("vllm:inter_token_latency_seconds", 1.0),
                ("vllm:time_per_output_token_seconds", 1.0),
            ),
            "e2e": (("vllm:e2e_request_latency_seconds", 1.0),),
        },
    ),
    "tgi": Engine(
        path="/metrics",
        model_label="",
        gauges={
            "requests_running": (("tgi_batch_current_size",),),
            "requests_waiting": (("tgi_queue_size",),),
        },
        counters={
            "requests_finished": (("tgi_request_success",), ("tgi_request_failure",)),
            "requests_failed": (("tgi_request_failure",),),
            "prompt_tokens": (("tgi_request_input_length_sum",),),
            "generation_tokens": (("tgi_request_generated_tokens_sum",),),
        },
        latencies={
            "tpot": (("tgi_request_mean_time_per_token_duration", 1.0),),
            "e2e": (("tgi_request_duration", 1.0),),
        },
    ),
    "trtllm": Engine(
        path="/prometheus/metrics",
        model_label="model_name",
        gauges={
            "requests_running": (("trtllm_num_requests_running",),),
            "requests_waiting": (("trtllm_num_requests_waiting",),),
            "kv_cache_ratio": (("trtllm_kv_cache_utilization",),),
        },
        counters={
            "requests_finished": (("trtllm_request_success_total",), ("trtllm_request_error_total",)),
            "requests_failed": (("trtllm_request_error_total",), ("trtllm_request_success_total", *_ENDED_BADLY)),
            "prompt_tokens": (("trtllm_prompt_tokens_total",),),
            "generation_tokens": (("trtllm_generation_tokens_total",),),
        },
        latencies={
            "ttft": (("trtllm_time_to_first_token_seconds", 1.0),),
            "tpot": (("trtllm_time_per_output_token_seconds", 1.0),),
            "e2e": (("trtllm_e2e_request_latency_seconds", 1.0),),
        },
    ),
    "triton": Engine(
        path="/metrics",
        model_label="model",
        gauges={
            "requests_running": (("nv_trt_llm_request_metrics", "request_type", "scheduled"),),
            "requests_waiting": (
                ("nv_trt_llm_request_metrics", "request_type", "waiting"),
                ("nv_inference_pending_request_count",),
            ),
            "kv_cache_ratio": (("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction"),),
        },
        counters={
            "requests_finished": (("nv_inference_request_success",), ("nv_inference_request_failure",)),
            "requests_failed": (("nv_inference_request_failure",),),
        },
        latencies={"ttft": (("nv_inference_first_response_histogram_ms", 1e-3),)},
        spent={"e2e": ("nv_inference_request_duration_us", "nv_inference_request_success", 1e-6)},
    ),
}
# Shares of a whole, of which several engines of one model have a mean.
RATIOS = frozenset({"kv_cache_ratio"})
WANTED = frozenset().union(*(engine.names for engine in ENGINES.values()))
