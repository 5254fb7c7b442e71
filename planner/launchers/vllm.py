"""vLLM: an OpenAI-compatible server, on one machine or, with Ray, on several."""

from __future__ import annotations

from planner.launchers.base import (
    NODE_RANK,
    Artefact,
    Command,
    File,
    Launcher,
    Option,
    Order,
    ServingOrder,
    Shell,
    command_text,
    first_reason,
    options,
    quoted,
)
from planner.reasons import Reason, reason
from planner.runs import ServingRun, WeightFormat

# Formats that the weights are turned into while they are read; all others are read as the checkpoint's own config says.
QUANTIZED_WHILE_READING: dict[WeightFormat, str] = {"fp8": "fp8", "nf4": "bitsandbytes", "nf4-dq": "bitsandbytes"}
DTYPES = {"bf16": "bfloat16", "fp16": "half", "fp32": "float"}
KV_DTYPES = ("bf16", "fp16", "fp8")
API_KEY = Shell('--api-key="${API_KEY:?the key that clients must send}"')
RAY_PORT = 6379


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, ServingOrder):
        return reason("launch.unfit.serving_only")
    run = order.run
    rules = [
        (run.layout.context > 1, reason("launch.unfit.context")),
        (run.kv_dtype not in KV_DTYPES, reason("launch.unfit.kv_dtype", dtype=run.kv_dtype)),
    ]
    return first_reason(rules)


def server_options(order: ServingOrder) -> list[Option]:
    run, place = order.run, order.place
    return [
        ("host", order.host),
        ("port", order.port),
        ("served-model-name", order.name),
        ("dtype", DTYPES.get(run.compute_dtype, "auto")),
        ("quantization", QUANTIZED_WHILE_READING.get(run.weight_format)),
        ("kv-cache-dtype", "fp8" if run.kv_dtype == "fp8" else None),
        ("tensor-parallel-size", run.layout.tensor),
        ("pipeline-parallel-size", run.layout.pipeline if run.layout.pipeline > 1 else None),
        ("data-parallel-size", run.layout.data if run.layout.data > 1 else None),
        ("data-parallel-backend", "ray" if run.layout.data > 1 and place.several_nodes else None),
        ("enable-expert-parallel", run.layout.expert > 1),
        ("distributed-executor-backend", "ray" if place.several_nodes else None),
        ("gpu-memory-utilization", run.memory_utilization),
        ("max-model-len", longest(run)),
        ("max-num-seqs", run.max_sequences or run.concurrency),
        ("max-num-batched-tokens", run.max_batched_tokens),
        ("enforce-eager", not run.cuda_graphs),
        # Its own all-reduce needs peer access between the cards.
        ("disable-custom-all-reduce", place.gpus > 1 and place.gpu.peer.startswith("none")),
    ]


def longest(run: ServingRun) -> int:
    return run.max_model_len or run.prompt_tokens + run.output_tokens


def write(order: Order) -> Artefact:
    assert isinstance(order, ServingOrder)
    place = order.place
    serve = command_text(["vllm", "serve", order.model, *options(server_options(order)), API_KEY], place.environment())
    commands = [Command(place.once, serve, reason("launch.note.vllm"))]
    files: list[File] = []
    if place.several_nodes:
        files.append(File("ray.sh", ray_script(order)))
        commands.insert(0, Command("every-node", "bash ray.sh", reason("launch.note.ray")))
    commands.append(Command(place.once, probe(order), reason("launch.note.probe")))
    notes = [reason("launch.note.api_key"), reason("launch.note.local_only")]
    if order.run.weight_format in {"gptq-int4", "awq-int4"}:
        notes.append(reason("launch.note.evaluate"))
    return Artefact("vllm", tuple(files), tuple(commands), tuple(notes))


def probe(order: ServingOrder) -> str:
    """A request that shows that the server answers."""
    host = "127.0.0.1" if order.host == "0.0.0.0" else order.host  # noqa: S104 - a comparison, nothing listens here
    header = Shell('"Authorization: Bearer $API_KEY"')
    words = ["curl", "-fsS", "-H", header, f"http://{host}:{order.port}/v1/models"]
    return command_text(words)


def ray_script(order: ServingOrder) -> str:
    """Joins the nodes to one Ray cluster; the first one leads, the others stay in it until it ends."""
    place = order.place
    exports = "".join(f"export {name}={quoted(value)}\n" for name, value in place.environment().items())
    leader = f"{place.leader}:{RAY_PORT}"
    return (
        "#!/usr/bin/env bash\n"
        "# Joins this node to the Ray cluster that vLLM runs on.\n"
        "set -euo pipefail\n"
        f"rank={NODE_RANK}\n"
        f"{exports}"
        'if [ "$rank" = 0 ]; then\n'
        f"  ray start --head --port={RAY_PORT} --num-gpus={place.gpus_per_node}\n"
        "else\n"
        f"  ray start --address={quoted(leader)} --num-gpus={place.gpus_per_node} --block\n"
        "fi\n"
    )


LAUNCHER = Launcher(key="vllm", unfit=unfit, write=write, frameworks=lambda _order: ("vllm",))
