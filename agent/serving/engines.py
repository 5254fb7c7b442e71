"""What each serving engine calls its figures.

Names as of vLLM 0.6 to 0.12 (docs/design/metrics.md), Text Generation Inference 1 to 3 (docs/source/reference/metrics.md),
TensorRT-LLM 1.x's trtllm-serve (tensorrt_llm/metrics/collector.py; page /prometheus/metrics) and Triton 23.11 on, with its
TensorRT-LLM backend or any other (docs/user_guide/metrics.md).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

_ENDED_BADLY = ("abort", "error", "cancelled", "timeout")


class Pick:
    """The series of one name, or those of them whose ``label`` has one of ``values``; together they make one figure."""

    __slots__ = ("label", "name", "values")

    def __init__(self, name: str, label: str = "", values: tuple[str, ...] = ()) -> None:
        self.name = name
        self.label = label
        self.values = values

    def takes(self, labels: dict[str, str]) -> bool:
        return not self.label or labels.get(self.label) in self.values


class Latency:
    """A histogram, or a sum and a count that two counters keep. ``factor`` makes seconds of its unit."""

    __slots__ = ("bucket", "count", "factor", "total")

    def __init__(self, total: str, count: str, bucket: Optional[str], factor: float = 1.0) -> None:
        self.total = total
        self.count = count
        self.bucket = bucket
        self.factor = factor


def _histogram(name: str, factor: float = 1.0) -> Latency:
    return Latency(f"{name}_sum", f"{name}_count", f"{name}_bucket", factor)


class Engine:
    """``gauges`` and ``counters``: field -> picks whose series are added up; ``latencies``: field -> the first that is there counts."""

    __slots__ = ("counters", "gauges", "latencies", "model_label", "name", "prefixes")

    def __init__(
        self,
        name: str,
        *,
        prefixes: tuple[str, ...],
        model_label: str,
        gauges: dict[str, tuple[Pick, ...]],
        counters: dict[str, tuple[Pick, ...]],
        latencies: dict[str, tuple[Latency, ...]],
    ) -> None:
        self.name = name
        self.prefixes = prefixes
        self.model_label = model_label
        self.gauges = gauges
        self.counters = counters
        self.latencies = latencies


VLLM = Engine(
    "vllm",
    prefixes=("vllm:",),
    model_label="model_name",
    gauges={
        "requests_running": (Pick("vllm:num_requests_running"),),
        "requests_waiting": (Pick("vllm:num_requests_waiting"),),
        # Renamed with the V1 engine; no version has both
        "kv_cache_ratio": (Pick("vllm:kv_cache_usage_perc"), Pick("vllm:gpu_cache_usage_perc")),
    },
    counters={
        # Despite its name it counts every end, by reason
        "requests_finished": (Pick("vllm:request_success_total"),),
        "requests_failed": (Pick("vllm:request_success_total", "finished_reason", _ENDED_BADLY),),
        "prompt_tokens": (Pick("vllm:prompt_tokens_total"),),
        "generation_tokens": (Pick("vllm:generation_tokens_total"),),
    },
    latencies={
        "ttft": (_histogram("vllm:time_to_first_token_seconds"),),
        # The first is a request's mean; the others count every token, under a name that changed in 0.10.2
        "tpot": (
            _histogram("vllm:request_time_per_output_token_seconds"),
            _histogram("vllm:inter_token_latency_seconds"),
            _histogram("vllm:time_per_output_token_seconds"),
        ),
        "e2e": (_histogram("vllm:e2e_request_latency_seconds"),),
    },
)
# Without a model's name: one server has one model. It does not measure the time to the first token
TGI = Engine(
    "tgi",
    prefixes=("tgi_",),
    model_label="",
    gauges={
        "requests_running": (Pick("tgi_batch_current_size"),),
        "requests_waiting": (Pick("tgi_queue_size"),),
    },
    counters={
        "requests_finished": (Pick("tgi_request_success"), Pick("tgi_request_failure")),
        "requests_failed": (Pick("tgi_request_failure"),),
        "prompt_tokens": (Pick("tgi_request_input_length_sum"),),
        "generation_tokens": (Pick("tgi_request_generated_tokens_sum"),),
    },
    latencies={
        "tpot": (_histogram("tgi_request_mean_time_per_token_duration"),),
        "e2e": (_histogram("tgi_request_duration"),),
    },
)
TRTLLM = Engine(
    "trtllm",
    prefixes=("trtllm_",),
    model_label="model_name",
    gauges={
        "requests_running": (Pick("trtllm_num_requests_running"),),
        "requests_waiting": (Pick("trtllm_num_requests_waiting"),),
        "kv_cache_ratio": (Pick("trtllm_kv_cache_utilization"),),
    },
    counters={
        "requests_finished": (Pick("trtllm_request_success_total"), Pick("trtllm_request_error_total")),
        "requests_failed": (
            Pick("trtllm_request_error_total"),
            Pick("trtllm_request_success_total", "finished_reason", _ENDED_BADLY),
        ),
        "prompt_tokens": (Pick("trtllm_prompt_tokens_total"),),
        "generation_tokens": (Pick("trtllm_generation_tokens_total"),),
    },
    latencies={
        "ttft": (_histogram("trtllm_time_to_first_token_seconds"),),
        "tpot": (_histogram("trtllm_time_per_output_token_seconds"),),
        "e2e": (_histogram("trtllm_e2e_request_latency_seconds"),),
    },
)
# It counts no tokens; how long requests took is a sum that successful ones add to
TRITON = Engine(
    "triton",
    prefixes=("nv_inference_", "nv_trt_llm_"),
    model_label="model",
    gauges={
        "requests_running": (Pick("nv_trt_llm_request_metrics", "request_type", ("scheduled",)),),
        "requests_waiting": (
            Pick("nv_trt_llm_request_metrics", "request_type", ("waiting",)),
            Pick("nv_inference_pending_request_count"),
        ),
        "kv_cache_ratio": (Pick("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", ("fraction",)),),
    },
    counters={
        "requests_finished": (Pick("nv_inference_request_success"), Pick("nv_inference_request_failure")),
        "requests_failed": (Pick("nv_inference_request_failure"),),
    },
    latencies={
        "ttft": (_histogram("nv_inference_first_response_histogram_ms", 1e-3),),
        "e2e": (Latency("nv_inference_request_duration_us", "nv_inference_request_success", None, 1e-6),),
    },
)
ENGINES = (VLLM, TGI, TRTLLM, TRITON)
PREFIXES = tuple(prefix for engine in ENGINES for prefix in engine.prefixes)
# Shares of a whole, of which several engines of one model have a mean
RATIOS = frozenset({"kv_cache_ratio"})
