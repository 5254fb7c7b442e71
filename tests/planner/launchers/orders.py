"""Orders that the tests of launchers are given: a small model, real names, every kind of layout."""

from __future__ import annotations

import shlex
from dataclasses import replace

from planner.catalogue.gpus import gpus
from planner.launchers.base import Order, Place, ServingOrder, TrainingOrder
from planner.runs import Layout, Lora, ServingRun, TrainingRun
from planner.shapes import Experts, LatentAttention, ModelShape

LLAMA_8B = ModelShape(
    name="Llama-3.1-8B",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate=14336,
    vocab=128256,
    max_positions=131072,
)
MIXTURE = replace(
    LLAMA_8B,
    name="Mixture",
    layers=8,
    experts=Experts(count=64, active=6, intermediate=1408, shared_intermediate=2816, dense_layers=1),
    latent=LatentAttention(query_rank=1536, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128),
    prediction_layers=1,
)
# Two processes on this machine stand for two GPUs.
TWO = Place(gpus()["l40s-48"], gpus_per_node=2, driver="580.95.05")
ONE = replace(TWO, gpus_per_node=1)
NODES = replace(TWO, gpus_per_node=8, hosts=("node-a", "node-b"), interface="eth0")


DATA = Layout(data=2)
TENSOR = Layout(tensor=2)


def training(layout: Layout = DATA, place: Place = TWO, **changes) -> TrainingOrder:
    """Changes of a TrainingRun by its fields; model, dataset, output and epochs are those of the order."""
    named = {name: changes.pop(name) for name in ("model", "dataset", "output", "epochs") if name in changes}
    run = TrainingRun(
        shape=changes.pop("shape", LLAMA_8B),
        method=changes.pop("method", "full"),
        engine=changes.pop("engine", "ddp"),
        layout=layout,
        sequence_length=changes.pop("sequence_length", 64),
        micro_batch=changes.pop("micro_batch", 2),
        gradient_accumulation=changes.pop("gradient_accumulation", 2),
        **changes,
    )
    return TrainingOrder(run, place, **{"model": "meta-llama/Llama-3.1-8B", "dataset": "data.jsonl", **named})


def serving(layout: Layout = TENSOR, place: Place = TWO, **changes) -> ServingOrder:
    named = {name: changes.pop(name) for name in ("model", "name", "host", "port") if name in changes}
    run = ServingRun(
        shape=LLAMA_8B,
        engine="vllm",
        layout=layout,
        concurrency=32,
        prompt_tokens=2000,
        output_tokens=500,
        **changes,
    )
    return ServingOrder(run, place, **{"model": "meta-llama/Llama-3.1-8B-Instruct", **named})


LORA = Lora(rank=8, targets=("q", "k", "v", "o"))
TRAINING_ORDERS: dict[str, TrainingOrder] = {
    "one-gpu": training(Layout(), ONE),
    "ddp": training(),
    "zero-1": training(Layout(data=2, zero_stage=1), gradient_accumulation=1),
    "zero-2": training(Layout(data=2, zero_stage=2)),
    "zero-3": training(Layout(data=2, zero_stage=3), checkpointing="full", logits="chunked"),
    "zero-3-plain": training(Layout(data=2, zero_stage=3)),
    "zero-3-offload": training(
        Layout(data=2, zero_stage=3), optimizer_offload=True, parameter_offload=True, engine="deepspeed"
    ),
    "lora": training(method="lora", lora=LORA, checkpointing="full"),
    "qlora": training(Layout(), ONE, method="qlora", weight_format="nf4-dq", optimizer="adamw-8bit"),
    "fp16": training(Layout(data=2, zero_stage=2), compute_dtype="fp16", weight_format="fp16"),
    "offload": training(method="lora", lora=LORA, activation_offload=True),
    "unpacked": training(packed=False, optimizer="adafactor", attention="eager"),
    "tensor": training(Layout(tensor=2, sequence_parallel=True), engine="megatron", checkpointing="selective"),
    "pipeline": training(Layout(pipeline=2), engine="megatron", checkpointing="full"),
    "nodes": training(Layout(data=16, zero_stage=3), NODES),
    "nodes-ddp": training(Layout(data=16), NODES),
    "nodes-tensor": training(Layout(data=2, tensor=8, zero_stage=1, sequence_parallel=True), NODES, engine="megatron"),
    "mixture": training(
        Layout(data=4, pipeline=2, context=2, expert=4, expert_tensor=1, virtual_pipeline=2, zero_stage=1),
        NODES,
        shape=MIXTURE,
        engine="megatron",
        checkpointing="selective",
        recompute_modules=("mla_up_proj", "moe"),
        compute_dtype="fp8",
        optimizer_offload=True,
    ),
    "geforce": training(Layout(data=4), Place(gpus()["rtx-4090-24"], gpus_per_node=4), method="lora", lora=LORA),
    "volta": training(Layout(data=2), Place(gpus()["v100-sxm2-32"], 2, driver="535.104.05"), compute_dtype="fp16"),
    "amd": training(Layout(data=2), Place(gpus()["mi300x-192"], 2)),
}
SERVING_ORDERS: dict[str, ServingOrder] = {
    "tensor": serving(),
    "one-gpu": serving(Layout(), ONE),
    "replicas": serving(Layout(data=2, expert=2)),
    "fp8": serving(weight_format="fp8", kv_dtype="fp8", max_model_len=8192, max_sequences=64, max_batched_tokens=4096),
    "awq": serving(weight_format="awq-int4", name="support", cuda_graphs=False),
    "gptq": serving(weight_format="gptq-int4"),
    "int8": serving(weight_format="int8", kv_dtype="int8"),
    "nf4": serving(Layout(), ONE, weight_format="nf4"),
    "nodes": serving(Layout(tensor=8, pipeline=2), NODES),
    "geforce": serving(Layout(tensor=2), Place(gpus()["rtx-4090-24"], gpus_per_node=2)),
}
ORDERS: dict[str, Order] = {
    **{f"training-{key}": order for key, order in TRAINING_ORDERS.items()},
    **{f"serving-{key}": order for key, order in SERVING_ORDERS.items()},
}


def shell_words(text: str) -> list[str]:
    """The words that a shell makes of a command, but for its variables."""
    return shlex.split(text.replace("\\\n", " "), comments=True)
