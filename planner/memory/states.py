"""Weights, gradients and optimizer states, and how ZeRO, tensor and pipeline parallelism divide them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.estimates import Term
from planner.memory.adapters import adapter_parameters, whole_parameters
from planner.memory.elements import weight_bytes
from planner.memory.placement import Local, Stage, local_parameters
from planner.runs import Optimizer, TrainingRun

ZERO = "Rajbhandari et al., arXiv 1910.02054 §5: stage 1 divides optimizer states, 2 gradients, 3 weights by the data-parallel size"
FSDP = frozenset({"fsdp", "torchtune", "litgpt"})
# 8-bit states share an fp32 scale between 256 elements (Dettmers et al., arXiv 2110.02861 §2.1).
_BLOCK_8BIT = 1 + 4 / 256


@dataclass(frozen=True, slots=True)
class PerParameter:
    """Bytes for one trained parameter."""

    weight: float
    gradient: float
    master: float
    optimizer: float


def per_parameter(run: TrainingRun) -> PerParameter:
    """For what is trained; a frozen base costs its weight format alone."""
    wide = run.master_weights or run.weight_format == "fp32"
    state = 4.0 if wide else 2.0
    weight, gradient, master = 2.0, 2.0, 0.0
    if run.engine in {"megatron", "nemo"}:
        weight = 1.0 if run.engine_options.get("fp8_param_gather") else 2.0
        gradient, master = _megatron_gradient(run), 4.0
    elif run.engine == "deepspeed" and wide:
        master = 4.0
    elif wide:
        # Autocast: the fp32 weights are the master.
        weight, gradient = 4.0, 4.0
    if run.gradient_dtype:
        gradient = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0}[run.gradient_dtype]
    return PerParameter(weight, gradient, master, optimizer_bytes(run.optimizer, state))


def _megatron_gradient(run: TrainingRun) -> float:
    """An fp32 buffer with bf16 weights; fp16 keeps the 16-bit buffer and makes fp32 gradients for the step."""
    if run.engine_options.get("grad_reduce_in_bf16"):
        return 2.0
    return 2.0 if run.compute_dtype == "fp16" else 4.0


def optimizer_bytes(optimizer: Optimizer, state: float) -> float:
    """States for a parameter, `state` bytes an element. Adafactor's row and column sums and a paged optimizer's states are not on the card."""
    return {
        "adamw": 2 * state,
        "adamw-8bit": 2 * _BLOCK_8BIT,
        "adamw-8bit-paged": 0.0,
        "adafactor": 0.01 * state,
        "sgd": 0.0,
        "sgd-momentum": state,
        "muon": state,
    }[optimizer]


@dataclass(frozen=True, slots=True)
class Held:
    """Parameters of one GPU: frozen in the base's format, or trained (dense ones, and routed experts with their own data-parallel group)."""

    base_linear: float
    base_rest: float
    dense: float
    routed: float

    @property
    def trained(self) -> float:
        return self.dense + self.routed


def held_parameters(run: TrainingRun, stage: Stage) -> Held:
    local = local_parameters(run, stage)
    if run.lora is None:
        return Held(0, 0, local.dense, local.routed)
    share = stage.layers / run.shape.layers / run.layout.tensor
    trained = (
        adapter_parameters(run.shape, run.lora) * share + whole_parameters(run.shape, run.lora) / run.layout.tensor
    )
    quantized, rest = _base(run, local)
    return Held(quantized, rest, trained, 0)


def _base(run: TrainingRun, local: Local) -> tuple[float, float]:
    """What the base's format covers, and what stays in 16 bits: embeddings and norms always, the head too but for litgpt."""
    linear = local.linear + local.routed
    if run.engine == "litgpt":
        return linear + local.head, local.embedding + local.norms
    return linear, local.embedding + local.head + local.norms


def data_shard(run: TrainingRun) -> float:
    """Over how many GPUs ZeRO spreads the dense parameters: Megatron includes the context-parallel group."""
    instances = run.engine_options.get("num_distributed_optimizer_instances", 1)
    return run.layout.data * run.layout.context / (int(instances) if isinstance(instances, str | int) else 1)


def expert_shard(run: TrainingRun) -> float:
    layout = run.layout
    ways = layout.data * layout.context * layout.tensor / (layout.expert * (layout.expert_tensor or layout.tensor))
    return max(1.0, ways * data_shard(run) / (layout.data * layout.context))


def state_terms(run: TrainingRun, stage: Stage) -> Iterator[Term]:
    """Weights, gradients, master copies, optimizer states, as they lie between steps."""
    held, each = held_parameters(run, stage), per_parameter(run)
    zero = run.layout.zero_stage
    if run.optimizer_offload and run.engine in FSDP:
        # Its CPU offload moves parameters, gradients and optimizer states together.
        return
    yield _weights(run, held, each)
    if run.compute_dtype == "fp8" and each.weight > 1:
        source = "Transformer Engine caches each weight in FP8 and transposed"
        yield Term.within("fp8_copies", 2.0 * held.trained, 0.3, formula=f"2 B x {held.trained:.4g}", source=source)
    if not run.optimizer_in_backward:
        yield _sharded("gradients", run, held, each.gradient, zero >= 2)
    if run.optimizer_offload:
        return
    if each.master:
        yield _sharded("master_weights", run, held, each.master, zero >= 1)
    if each.optimizer:
        yield _optimizer(run, stage, held, each)


def _weights(run: TrainingRun, held: Held, each: PerParameter) -> Term:
    shard = data_shard(run) if run.layout.zero_stage == 3 else 1
    expert = expert_shard(run) if run.layout.zero_stage == 3 else 1
    base = weight_bytes(run.weight_format, run.engine)
    frozen = (held.base_linear * base + held.base_rest * 2.0) / shard
    trained_bytes = _trained_weight(run, each)
    trained = held.dense * trained_bytes / shard + held.routed * trained_bytes / expert
    amount = 0.0 if run.parameter_offload else frozen + trained
    formula = f"{base:g} B x frozen {held.base_linear:.4g} + 2 B x {held.base_rest:.4g} + {trained_bytes:g} B x trained {held.trained:.4g}, / {shard:g}"
    return Term.exact("weights", amount, formula=formula, source=ZERO)


def _trained_weight(run: TrainingRun, each: PerParameter) -> float:
    """Adapters are fp32 but in pure 16-bit training (peft casts them up)."""
    if run.lora is None:
        return each.weight
    return 4.0 if run.engine in {"transformers", "deepspeed", "ddp"} else 2.0


def _sharded(key: str, run: TrainingRun, held: Held, size: float, sharded: bool) -> Term:
    dense, expert = (data_shard(run), expert_shard(run)) if sharded else (1.0, 1.0)
    amount = size * (held.dense / dense + held.routed / expert)
    return Term.exact(
        key,
        amount,
        formula=f"{size:g} B x ({held.dense:.4g} / {dense:g} + {held.routed:.4g} / {expert:g})",
        source=ZERO,
    )


def _optimizer(run: TrainingRun, stage: Stage, held: Held, each: PerParameter) -> Term:
    sharded = run.layout.zero_stage >= 1
    if run.optimizer != "muon":
        return _sharded("optimizer", run, held, each.optimizer, sharded)
    local = local_parameters(run, stage)
    vectors = local.embedding + local.head + local.norms
    amount = each.optimizer * (held.trained + vectors)
    formula = (
        f"{each.optimizer:g} B x matrices {held.trained - vectors:.4g} + {2 * each.optimizer:g} B x rest {vectors:.4g}"
    )
    return Term.exact(
        "optimizer", amount, formula=formula, source="Muon: momentum of whole matrices, AdamW for embeddings and norms"
    )
