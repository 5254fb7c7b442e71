"""What training launchers share: the arguments of our scripts, and what those scripts can do."""

from __future__ import annotations

from planner.launchers.base import File, Option, Order, TrainingOrder, first_reason, script
from planner.reasons import Reason, reason
from planner.runs import Lora, Optimizer, TrainingRun

# Usual peak rates: adapters bear ten times what all weights do.
LEARNING_RATES = {"full": 2e-5, "lora": 2e-4, "qlora": 2e-4}
DEFAULT_LORA = Lora(rank=16, targets=("q", "k", "v", "o", "gate", "up", "down"))
MODULES = {
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "o": "o_proj",
    "gate": "gate_proj",
    "up": "up_proj",
    "down": "down_proj",
}
WHOLE_MODULES = {"embed": "embed_tokens", "head": "lm_head"}
SCRIPT_OPTIMIZERS: tuple[Optimizer, ...] = (
    "adamw",
    "adamw-8bit",
    "adamw-8bit-paged",
    "adafactor",
    "sgd",
    "sgd-momentum",
)


def learning_rate(order: TrainingOrder) -> float:
    return order.learning_rate or LEARNING_RATES[order.run.method]


def lora_of(order: TrainingOrder) -> Lora:
    return order.run.lora or DEFAULT_LORA


def module_names(lora: Lora) -> tuple[str, str]:
    """Adapted layers and layers trained whole, by the names that Llama, Qwen, Mistral and their kin give them."""
    adapted = ",".join(MODULES.get(name, name) for name in lora.targets)
    return adapted, ",".join(WHOLE_MODULES.get(name, name) for name in lora.trained_whole)


def plain_arguments(order: TrainingOrder, dtype: str) -> list[Option]:
    """The arguments that all training scripts have. `dtype` as the framework calls it."""
    run = order.run
    pairs: list[Option] = [
        ("model", order.model),
        ("dataset", order.dataset),
        ("output", order.output),
        ("sequence-length", run.sequence_length),
        ("micro-batch", run.micro_batch),
        ("gradient-accumulation", run.gradient_accumulation),
        ("epochs", order.epochs),
        ("learning-rate", learning_rate(order)),
        ("dtype", dtype),
        ("checkpointing", run.checkpointing != "none"),
    ]
    if run.method != "full":
        pairs += [("lora-rank", lora_of(order).rank), ("lora-targets", module_names(lora_of(order))[0])]
    return pairs


def script_arguments(order: TrainingOrder) -> list[Option]:
    """The arguments of planner/launchers/scripts/finetune.py."""
    run = order.run
    whole = module_names(lora_of(order))[1] if run.method != "full" else None
    return [
        *plain_arguments(order, run.compute_dtype),
        ("lora-whole", whole or None),
        ("method", run.method),
        ("optimizer", run.optimizer),
        ("attention", "eager" if run.attention == "eager" else "sdpa"),
        ("compile", run.compiled),
        ("no-packed", not run.packed),
        ("no-master-weights", not run.master_weights),
    ]


def rules_of_memory(run: TrainingRun, *, chunked: bool) -> list[tuple[bool, Reason]]:
    """What the plan saves memory with and this launcher would leave out: it would run out of memory where the plan fits."""
    return [
        (run.optimizer_in_backward or run.activation_offload, reason("launch.unfit.offload")),
        (run.logits == "chunked" and not chunked, reason("launch.unfit.chunked")),
    ]


def unfit_for_scripts(order: Order) -> Reason | None:
    """Our scripts split the data, and the model's states; they don't split a model's layers or sequences."""
    if not isinstance(order, TrainingOrder):
        return reason("launch.unfit.training_only")
    run, layout = order.run, order.run.layout
    # The scaler that keeps FP16 gradients from vanishing needs weights in FP32.
    unscaled = run.compute_dtype == "fp16" and run.method == "full" and not run.master_weights
    rules = [
        (layout.tensor * layout.pipeline * layout.context * layout.expert > 1, reason("launch.unfit.splits_the_model")),
        (run.compute_dtype == "fp8", reason("launch.unfit.fp8")),
        (run.optimizer not in SCRIPT_OPTIMIZERS, reason("launch.unfit.optimizer", optimizer=run.optimizer)),
        (unscaled, reason("launch.unfit.fp16_master")),
        *rules_of_memory(run, chunked=True),
    ]
    return first_reason(rules)


def data_notes(order: TrainingOrder) -> tuple[Reason, ...]:
    """What whoever starts the run should know, whichever launcher it is."""
    notes = [reason("launch.note.dataset"), reason("launch.note.resume")]
    if order.run.attention == "flash":
        notes.append(reason("launch.note.attention"))
    if order.run.method != "full":
        notes.append(reason("launch.note.modules"))
    if order.place.several_nodes:
        notes.append(reason("launch.note.same_paths"))
    return tuple(notes)


def shared_scripts(main: str) -> tuple[File, ...]:
    return script(main), script("finetune.py")
