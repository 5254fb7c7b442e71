"""Megatron-LM: tensor, pipeline, context and expert parallelism, as arguments of pretrain_gpt.py.

Weights come from and go to Hugging Face's format through Megatron Bridge; see planner.launchers.export for the way back.
"""

from __future__ import annotations

from planner.launchers.base import (
    Artefact,
    Command,
    Launcher,
    Option,
    Order,
    Shell,
    TrainingOrder,
    command_text,
    first_reason,
    options,
    script,
)
from planner.launchers.torchrun import torchrun_words
from planner.launchers.training import learning_rate, rules_of_memory
from planner.reasons import Reason, reason
from planner.runs import Checkpointing, TrainingRun
from planner.shapes import Experts, LatentAttention, ModelShape

ROOT = "${MEGATRON:?directory of a checkout of Megatron-LM}"
STEPS = Shell('--train-iters="${TRAIN_STEPS:?number of optimizer steps: samples x epochs / global batch}"')
PRETRAIN = Shell(f'"{ROOT}/pretrain_gpt.py"')
PREPROCESS = Shell(f'"{ROOT}/tools/preprocess_data.py"')
OPTIMIZERS = {"adamw": "adam", "sgd": "sgd", "sgd-momentum": "sgd", "muon": "muon"}
POSITIONS = {"rope": "rope", "learned": "learned_absolute", "none": "none"}


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, TrainingOrder):
        return reason("launch.unfit.training_only")
    run = order.run
    rules = [
        (run.method != "full", reason("launch.unfit.adapters")),
        (run.layout.zero_stage >= 2, reason("launch.unfit.zero_2")),
        (run.optimizer not in OPTIMIZERS, reason("launch.unfit.optimizer", optimizer=run.optimizer)),
        (run.shape.positions not in POSITIONS, reason("launch.unfit.positions")),
        (run.parameter_offload, reason("launch.unfit.parameter_offload")),
        (run.compute_dtype == "fp32", reason("launch.unfit.dtype", dtype=run.compute_dtype)),
    ]
    return first_reason([*rules, *rules_of_memory(run, chunked=True)])


def model_options(shape: ModelShape) -> list[Option]:
    pairs: list[Option] = [
        ("num-layers", shape.layers),
        ("hidden-size", shape.hidden),
        ("ffn-hidden-size", shape.intermediate),
        ("num-attention-heads", shape.heads),
        ("group-query-attention", shape.kv_heads != shape.heads and not shape.latent),
        ("num-query-groups", shape.kv_heads if shape.kv_heads != shape.heads and not shape.latent else None),
        ("kv-channels", None if shape.latent else shape.head_dim),
        ("position-embedding-type", POSITIONS[shape.positions]),
        ("swiglu", shape.gated_mlp),
        ("normalization", "LayerNorm" if shape.layer_norm else "RMSNorm"),
        ("disable-bias-linear", not shape.bias),
        ("add-qkv-bias", shape.qkv_bias and not shape.bias),
        ("untie-embeddings-and-output-weights", not shape.tied_embeddings),
        ("mtp-num-layers", shape.prediction_layers or None),
    ]
    if shape.latent:
        pairs += latent_options(shape.latent)
    if shape.experts:
        pairs += expert_options(shape.experts, shape.layers)
    if shape.sliding:
        pairs.append(("window-size", f"{shape.sliding.window},0"))
    return pairs


def latent_options(latent: LatentAttention) -> list[Option]:
    return [
        ("multi-latent-attention", True),
        ("q-lora-rank", latent.query_rank),
        ("kv-lora-rank", latent.kv_rank),
        ("qk-head-dim", latent.nope_dim),
        ("qk-pos-emb-head-dim", latent.rope_dim),
        ("v-head-dim", latent.value_dim),
    ]


def expert_options(experts: Experts, layers: int) -> list[Option]:
    dense = experts.dense_layers
    return [
        ("num-experts", experts.count),
        ("moe-router-topk", experts.active),
        ("moe-ffn-hidden-size", experts.intermediate),
        ("moe-shared-expert-intermediate-size", experts.shared_intermediate or None),
        ("moe-layer-freq", f"([0]*{dense}+[1]*{layers - dense})" if dense else None),
        ("moe-grouped-gemm", True),
        ("moe-token-dispatcher-type", "alltoall"),
    ]


def parallel_options(run: TrainingRun) -> list[Option]:
    layout = run.layout
    return [
        ("tensor-model-parallel-size", layout.tensor),
        ("pipeline-model-parallel-size", layout.pipeline),
        ("num-virtual-stages-per-pipeline-rank", layout.virtual_pipeline if layout.virtual_pipeline > 1 else None),
        ("context-parallel-size", layout.context),
        ("expert-model-parallel-size", layout.expert if run.shape.experts else None),
        ("expert-tensor-parallel-size", layout.expert_tensor if run.shape.experts else None),
        ("sequence-parallel", layout.sequence_parallel and layout.tensor > 1),
        ("use-distributed-optimizer", layout.zero_stage == 1),
        ("overlap-grad-reduce", layout.zero_stage == 1),
        ("overlap-param-gather", layout.zero_stage == 1),
    ]


def recompute_options(checkpointing: Checkpointing) -> list[Option]:
    if checkpointing == "full":
        return [("recompute-granularity", "full"), ("recompute-method", "uniform"), ("recompute-num-layers", 1)]
    return [("recompute-granularity", "selective")] if checkpointing == "selective" else []


def training_options(order: TrainingOrder) -> list[Option]:
    run, rate = order.run, learning_rate(order)
    return [
        ("seq-length", run.sequence_length),
        ("max-position-embeddings", max(run.sequence_length, run.shape.max_positions)),
        ("micro-batch-size", run.micro_batch),
        ("global-batch-size", run.sequences_per_step),
        ("lr", rate),
        ("min-lr", rate / 10),
        ("lr-decay-style", "cosine"),
        ("lr-warmup-fraction", 0.03),
        ("weight-decay", 0.0),
        ("clip-grad", 1.0),
        ("optimizer", OPTIMIZERS[run.optimizer]),
        ("optimizer-cpu-offload", run.optimizer_offload),
        ("bf16", run.compute_dtype in {"bf16", "fp8"}),
        ("fp16", run.compute_dtype == "fp16"),
        ("fp8-format", "hybrid" if run.compute_dtype == "fp8" else None),
        ("attention-backend", {"flash": "flash", "sdpa": "fused", "eager": "unfused"}[run.attention]),
        ("cross-entropy-loss-fusion", run.logits == "chunked"),
        *recompute_options(run.checkpointing),
    ]


def data_options(order: TrainingOrder) -> list[Option]:
    return [
        ("tokenizer-type", "HuggingFaceTokenizer"),
        ("tokenizer-model", order.model),
        ("data-path", f"{order.output}/data_text_document"),
        ("split", "98,2,0"),
        ("pretrained-checkpoint", f"{order.output}/start"),
        ("load", f"{order.output}/megatron"),
        ("save", f"{order.output}/megatron"),
        ("save-interval", 500),
        ("eval-interval", 500),
        ("eval-iters", 10),
        ("log-interval", 10),
        ("log-throughput", True),
    ]


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    run, place = order.run, order.place
    convert: list[Option] = [("import", order.model), ("megatron", f"{order.output}/start")]
    data: list[Option] = [
        ("input", order.dataset),
        ("output-prefix", f"{order.output}/data"),
        ("tokenizer-type", "HuggingFaceTokenizer"),
        ("tokenizer-model", order.model),
        ("workers", 8),
        ("append-eod", True),
    ]
    choices = [*model_options(run.shape), *parallel_options(run), *training_options(order), *data_options(order)]
    # Megatron overlaps tensor-parallel traffic with arithmetic only if kernels are queued in one order (not needed from Blackwell on).
    environment = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", **place.environment()}
    modules = ["--recompute-modules", *run.recompute_modules] if run.recompute_modules else []
    steps = STEPS if order.steps is None else f"--train-iters={order.steps}"
    start = command_text([*torchrun_words(place), PRETRAIN, *options(choices), steps, *modules], environment)
    commands = (
        Command(
            place.once, command_text(["python", "convert.py", *options(convert)]), reason("launch.note.megatron_import")
        ),
        Command(place.once, command_text(["python", PREPROCESS, *options(data)]), reason("launch.note.megatron_data")),
        Command(
            place.everywhere,
            start,
            reason("launch.note.megatron" if order.steps is None else "launch.note.megatron_start"),
        ),
    )
    notes = [reason("launch.note.megatron_checkout"), reason("launch.note.rope_base")]
    if place.several_nodes:
        notes.append(reason("launch.note.same_paths"))
    return Artefact("megatron", (script("convert.py"),), commands, tuple(notes))


LAUNCHER = Launcher(
    key="megatron",
    unfit=unfit,
    write=write,
    frameworks=lambda _order: ("megatron-core", "transformer-engine"),
    packages=("transformers", "megatron-bridge"),
)
