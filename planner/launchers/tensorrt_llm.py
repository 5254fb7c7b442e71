"""TensorRT-LLM: quantize or convert, build an engine for one kind of GPU, serve it."""

from __future__ import annotations

from planner.launchers.base import (
    Artefact,
    Command,
    Launcher,
    Option,
    Order,
    ServingOrder,
    Shell,
    command_text,
    first_reason,
    options,
)
from planner.launchers.vllm import longest, probe
from planner.reasons import Reason, reason
from planner.runs import WeightFormat

QUANTIZE = Shell('"${TENSORRT_LLM:?directory of a checkout of TensorRT-LLM}/examples/quantization/quantize.py"')
FORMATS: dict[WeightFormat, str] = {
    "bf16": "full_prec",
    "fp16": "full_prec",
    "fp8": "fp8",
    "int8": "int8_sq",
    "awq-int4": "int4_awq",
}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, ServingOrder):
        return reason("launch.unfit.serving_only")
    run = order.run
    rules = [
        (order.place.several_nodes, reason("launch.unfit.one_node")),
        (run.weight_format not in FORMATS, reason("launch.unfit.weight_format", format=run.weight_format)),
        (run.compute_dtype not in DTYPES, reason("launch.unfit.dtype", dtype=run.compute_dtype)),
        (run.layout.data * run.layout.context > 1, reason("launch.unfit.replicas")),
    ]
    return first_reason(rules)


def convert_options(order: ServingOrder) -> list[Option]:
    run = order.run
    return [
        ("model_dir", order.model),
        ("dtype", DTYPES[run.compute_dtype]),
        ("qformat", FORMATS[run.weight_format]),
        ("kv_cache_dtype", run.kv_dtype if run.kv_dtype in {"fp8", "int8"} else None),
        ("output_dir", "checkpoint"),
        ("tp_size", run.layout.tensor),
        ("pp_size", run.layout.pipeline),
    ]


def build_options(order: ServingOrder) -> list[Option]:
    run = order.run
    return [
        ("checkpoint_dir", "checkpoint"),
        ("output_dir", "engine"),
        ("max_batch_size", run.max_sequences or run.concurrency),
        ("max_input_len", run.prompt_tokens),
        ("max_seq_len", longest(run)),
        ("max_num_tokens", run.max_batched_tokens or max(8192, run.prompt_tokens)),
        ("workers", order.place.gpus_per_node),
    ]


def serve_options(order: ServingOrder) -> list[Option]:
    run, layout = order.run, order.run.layout
    return [
        ("backend", "tensorrt"),
        ("tokenizer", order.model),
        ("host", order.host),
        ("port", order.port),
        ("tp_size", layout.tensor),
        ("pp_size", layout.pipeline),
        ("ep_size", layout.expert if layout.expert > 1 else None),
        ("kv_cache_free_gpu_memory_fraction", run.memory_utilization),
    ]


def write(order: Order) -> Artefact:
    assert isinstance(order, ServingOrder)
    convert = command_text(["python", QUANTIZE, *options(convert_options(order))])
    build = command_text(["trtllm-build", *options(build_options(order))])
    serve = command_text(["trtllm-serve", "serve", "engine", *options(serve_options(order))], order.place.environment())
    commands = (
        Command("one-machine", convert, reason("launch.note.trt_convert")),
        Command("one-machine", build, reason("launch.note.trt_build")),
        Command("one-machine", serve, reason("launch.note.trt_serve")),
        Command("one-machine", probe(order), reason("launch.note.probe")),
    )
    notes = [
        reason("launch.note.trt_gpu", gpu=order.place.gpu.name),
        reason("launch.note.trt_key"),
        reason("launch.note.trt_wheels"),
    ]
    if order.run.weight_format == "awq-int4":
        notes.append(reason("launch.note.evaluate"))
    return Artefact("tensorrt_llm", (), commands, tuple(notes))


LAUNCHER = Launcher(key="tensorrt_llm", unfit=unfit, write=write, frameworks=lambda _order: ("tensorrt-llm",))
