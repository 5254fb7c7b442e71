"""Weights, gradients and optimizer states, and how ZeRO, tensor and pipeline parallelism divide them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.estimates import Term
from planner.memory.adapters import adapter_parameters, whole_parameters
from planner.memory.elements import DTYPE_BYTES, weight_bytes
from planner.memory.placement import Stage, local_parameters
from planner.runs import Optimizer, TrainingRun

ZERO = "Rajbhandari et al., arXiv 1910.02054 §5: stage 1 divides optimizer states, 2 gradients, 3 weights by the data-parallel size"
FSDP = frozenset({"fsdp", "torchtune", "litgpt"})
PEFT = frozenset({"transformers", "deepspeed", "ddp", "fsdp"})
# 8-bit states share an fp32 scale between 256 elements (Dettmers et al., arXiv 2110.02861 §2.1).
_BLOCK_8BIT = 1 + 4 / 256


@dataclass(frozen=True, slots=True)
class PerParameter:
    """Bytes for one trained parameter."""

    weight: float
    gradient: float
    master: float
    optimizer: float


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters on one GPU that are trained alike; `expert`: sharded over the data-parallel group of the experts."""

    parameters: float
    each: PerParameter
    expert: bool = False


def per_parameter(run: TrainingRun) -> PerParameter:
    """Of a run that trains everything, or of layers that a LoRA run trains whole."""
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
        gradient = DTYPE_BYTES[run.gradient_dtype]
    return PerParameter(weight, gradient, master, optimizer_bytes(run.optimizer, state))


def _per_adapter(run: TrainingRun) -> PerParameter:
    """The adapters of peft are fp32 throughout, whatever the base is; torchtune's and litgpt's are as the run."""
    if run.engine in PEFT:
        return PerParameter(4.0, 4.0, 0.0, optimizer_bytes(run.optimizer, 4.0))
    return per_parameter(run)


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


def trained_groups(run: TrainingRun, stage: Stage) -> tuple[Group, ...]:
    local, each = local_parameters(run, stage), per_parameter(run)
    if run.lora is None:
        return Group(local.dense, each), Group(local.routed, each, expert=True)
    adapters = adapter_parameters(run.shape, run.lora) * stage.layers / run.shape.layers
    whole = whole_parameters(run.shape, run.lora)
    tensor = run.layout.tensor
    return Group(adapters / tensor, _per_adapter(run)), Group(whole / tensor, each)


def trained_on_stage(run: TrainingRun, stage: Stage) -> float:
    return sum(group.parameters for group in trained_groups(run, stage))


def _frozen(run: TrainingRun, stage: Stage) -> tuple[float, float]:
    """What the base's format covers, and what stays in 16 bits: embeddings and norms always, the head too but for litgpt."""
    if run.lora is None:
        return 0.0, 0.0
    local = local_parameters(run, stage)
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
    groups, zero = trained_groups(run, stage), run.layout.zero_stage
    if run.optimizer_offload and run.engine in FSDP:
        # Its CPU offload moves parameters, gradients and optimizer states together.
        return
    yield _weights(run, stage, groups)
    if run.compute_dtype == "fp8" and per_parameter(run).weight > 1:
        trained = trained_on_stage(run, stage)
        source = "Transformer Engine caches each weight in FP8 and transposed"
        yield Term.within("fp8_copies", 2.0 * trained, 0.3, formula=f"2 B x {trained:.4g}", source=source)
    # DeepSpeed sends each bucket of gradients to the host as soon as it is reduced: ZeRO-Offload, arXiv 2101.06840, section 4.
    sent_away = run.optimizer_offload and run.engine == "deepspeed" and zero >= 2
    if not (run.optimizer_in_backward or sent_away):
        yield _sum("gradients", run, groups, lambda each: each.gradient, sharded=zero >= 2)
    if run.optimizer_offload:
        return
    yield _sum("master_weights", run, groups, lambda each: each.master, sharded=zero >= 1)
    if run.optimizer == "muon":
        yield _muon(run, stage, groups)
    else:
        yield _sum("optimizer", run, groups, lambda each: each.optimizer, sharded=zero >= 1)


def _weights(run: TrainingRun, stage: Stage, groups: tuple[Group, ...]) -> Term:
    sharded = run.layout.zero_stage == 3
    trained = _sum("weights", run, groups, lambda each: each.weight, sharded=sharded)
    if run.parameter_offload:
        return Term.exact("weights", 0.0, formula="offloaded", source=ZERO)
    linear, rest = _frozen(run, stage)
    base, shard = weight_bytes(run.weight_format, run.engine), data_shard(run) if sharded else 1.0
    if not linear:
        return trained
    frozen = (linear * base + rest * 2.0) / shard
    formula = f"({base:g} B x {linear:.4g} + 2 B x {rest:.4g}) / {shard:g} + {trained.formula}"
    return Term.exact("weights", frozen + trained.expected, formula=formula, source=ZERO)


def _sum(
    key: str, run: TrainingRun, groups: tuple[Group, ...], size: Callable[[PerParameter], float], *, sharded: bool
) -> Term:
    amount, parts = 0.0, []
    for group in groups:
        ways = (expert_shard(run) if group.expert else data_shard(run)) if sharded else 1.0
        amount += size(group.each) * group.parameters / ways
        if group.parameters:
            parts.append(f"{size(group.each):g} B x {group.parameters:.4g} / {ways:g}")
    return Term.exact(key, amount, formula=" + ".join(parts) or "nothing trained", source=ZERO)


def _muon(run: TrainingRun, stage: Stage, groups: tuple[Group, ...]) -> Term:
    """Its update needs whole matrices, so that nothing of it is sharded; embeddings and norms keep AdamW's two states."""
    local, trained = local_parameters(run, stage), sum(group.parameters for group in groups)
    vectors, size = local.embedding + local.head + local.norms, groups[0].each.optimizer
    formula = f"{size:g} B x ({trained:.4g} + embeddings and norms {vectors:.4g})"
    return Term.exact(
        "optimizer", size * (trained + vectors), formula=formula, source="Muon: one momentum, AdamW for the rest"
    )
