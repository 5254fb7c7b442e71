"""Pages of serving engines, written after what their projects document; figures are ours."""

from __future__ import annotations

from collections.abc import Mapping


def histogram(name: str, labels: str, buckets: Mapping[str, float], total: float) -> str:
    """`buckets`: upper bound -> how many at or below it, "+Inf" last."""
    inside = f"{labels}," if labels else ""
    lines = [f"# TYPE {name} histogram"]
    lines += [f'{name}_bucket{{{inside}le="{bound}"}} {count}' for bound, count in buckets.items()]
    braces = f"{{{labels}}}" if labels else ""
    return "\n".join([*lines, f"{name}_count{braces} {buckets['+Inf']}", f"{name}_sum{braces} {total}", ""])


def vllm(
    *,
    model: str = "meta-llama/Llama-3.1-8B-Instruct",
    engine: str = "0",
    running: float = 3.0,
    waiting: float = 1.0,
    cache: float = 0.25,
    stopped: float = 100.0,
    aborted: float | None = None,
    prompt: float = 50_000.0,
    generated: float = 20_000.0,
    ttft: tuple[float, float, float] = (60.0, 90.0, 100.0),
    cache_name: str = "vllm:kv_cache_usage_perc",
) -> str:
    """ttft: requests whose first token came within 0.1 s, within 0.5 s, and ever."""
    labels = f'engine="{engine}",model_name="{model}"'
    quick, fair, ever = ttft
    lines = [
        "# HELP python_gc_objects_collected_total Objects collected during gc",
        'python_gc_objects_collected_total{generation="0"} 9.0',
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{{{labels}}} {running}",
        f"vllm:num_requests_waiting{{{labels}}} {waiting}",
        f"{cache_name}{{{labels}}} {cache}",
        f"vllm:prompt_tokens_total{{{labels}}} {prompt}",
        f"vllm:prompt_tokens_created{{{labels}}} 1.7e+09",
        f"vllm:generation_tokens_total{{{labels}}} {generated}",
        f'vllm:request_success_total{{{labels},finished_reason="stop"}} {stopped}',
        f'vllm:request_success_total{{{labels},finished_reason="length"}} 0.0',
    ]
    if aborted is not None:
        lines.append(f'vllm:request_success_total{{{labels},finished_reason="abort"}} {aborted}')
    text = "\n".join(lines) + "\n"
    text += histogram(
        "vllm:time_to_first_token_seconds", labels, {"0.1": quick, "0.5": fair, "1.0": ever, "+Inf": ever}, ever * 0.12
    )
    text += histogram("vllm:inter_token_latency_seconds", labels, {"0.025": generated, "+Inf": generated}, 180.0)
    return text + histogram("vllm:e2e_request_latency_seconds", labels, {"5.0": ever, "+Inf": ever}, 2.0 * ever)


def tgi(*, success: float = 40.0, failed: float | None = None, generated: float = 8_000.0) -> str:
    lines = [
        "# TYPE tgi_queue_size gauge",
        "tgi_queue_size 2",
        "tgi_batch_current_size 5",
        f"tgi_request_count {success + (failed or 0)}",
        f"tgi_request_success {success}",
    ]
    if failed is not None:
        lines.append(f'tgi_request_failure{{err="overloaded"}} {failed}')
    text = "\n".join(lines) + "\n"
    text += histogram("tgi_request_input_length", "", {"128": success, "+Inf": success}, 100 * success)
    text += histogram("tgi_request_generated_tokens", "", {"512": success, "+Inf": success}, generated)
    text += histogram(
        "tgi_request_mean_time_per_token_duration", "", {"0.02": success, "+Inf": success}, success * 0.01
    )
    return text + histogram("tgi_request_duration", "", {"4": success, "+Inf": success}, 3.0 * success)


def trtllm(*, success: float | None = 10.0, errors: float | None = None) -> str:
    labels = 'model_name="llama",engine_type="trtllm"'
    lines = [
        f"trtllm_num_requests_running{{{labels}}} 4.0",
        f"trtllm_num_requests_waiting{{{labels}}} 0.0",
        f"trtllm_kv_cache_utilization{{{labels}}} 0.5",
    ]
    if success is not None:
        lines += [
            f'trtllm_request_success_total{{{labels},finished_reason="length"}} {success}',
            f"trtllm_prompt_tokens_total{{{labels}}} {100 * success}",
            f"trtllm_generation_tokens_total{{{labels}}} {50 * success}",
        ]
    if errors is not None:
        lines.append(f"trtllm_request_error_total{{{labels}}} {errors}")
    return "\n".join(lines) + "\n"


def triton(*, success: float = 7.0, failed: float = 0.0, spent_us: float = 7e6) -> str:
    model = 'model="tensorrt_llm",version="1"'
    return (
        "\n".join(
            [
                "# TYPE nv_inference_request_success counter",
                f"nv_inference_request_success{{{model}}} {success}",
                f'nv_inference_request_failure{{{model},reason="BACKEND"}} {failed}',
                f'nv_inference_request_failure{{{model},reason="CANCELED"}} 0',
                f"nv_inference_request_duration_us{{{model}}} {spent_us}",
                f"nv_inference_pending_request_count{{{model}}} 0",
                'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 3',
                'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 8',
                'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 64',
                'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.6',
                'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5',
            ]
        )
        + "\n"
    )
