"""What a chosen option asks of the machines around its GPUs."""

from __future__ import annotations

from planner.choice.serving import ServingOption
from planner.choice.training import CHECKPOINT_SECONDS, TrainingOption
from planner.host import HostLoad, Need, host_needs
from planner.memory.serving import weights
from planner.parameters import count_parameters
from planner.runs import TrainingRun
from planner.speed.whole_run import (
    GPUS_OF_A_MACHINE,
    RESUMABLE_BYTES,
    TOKEN_BYTES,
    checkpoint_bytes,
    machines_of,
)
from planner.wishes import ServingWish, TrainingWish

KEPT_CHECKPOINTS = 2
# Raw text beside its tokens.
TEXT_AND_TOKENS_BYTES = 8.0
# 32-bit master weights and moments of AdamW, and gradients on their way, for each trained parameter.
OFFLOADED_BYTES = 16.0


def training_host(option: TrainingOption, wish: TrainingWish) -> tuple[Need, ...]:
    run, step = option.run, option.speed.step
    nodes = machines_of(option.gpus)
    total = count_parameters(run.shape).total
    tokens_per_second = option.speed.tokens_per_second / nodes
    return host_needs(
        HostLoad(
            gpus_per_node=min(option.gpus, GPUS_OF_A_MACHINE),
            nodes=nodes,
            weights=2.0 * total,
            checkpoint=checkpoint_bytes(run),
            kept_checkpoints=KEPT_CHECKPOINTS,
            checkpoint_interval_seconds=CHECKPOINT_SECONDS,
            dataset=TEXT_AND_TOKENS_BYTES * wish.samples * wish.tokens_per_sample,
            read_rate=TOKEN_BYTES * tokens_per_second,
            network_per_step=_between_nodes(option),
            step_seconds=step.expected,
            offloaded=_offloaded(run) / nodes,
            tokenizes_while_training=not wish.packed,
            personal_data=wish.personal_data,
        )
    )


def _offloaded(run: TrainingRun) -> float:
    trained = OFFLOADED_BYTES * _trained(run) if run.optimizer_offload else 0.0
    return trained + (2.0 * count_parameters(run.shape).total if run.parameter_offload else 0.0)


def _trained(run: TrainingRun) -> float:
    return count_parameters(run.shape).total if run.lora is None else checkpoint_bytes(run) / RESUMABLE_BYTES


def _between_nodes(option: TrainingOption) -> float:
    """Bytes of gradients and, under ZeRO-3, of weights that a machine sends in a step: 2 (n - 1) / n of what its ranks hold, in 16 bits."""
    layout = option.run.layout
    nodes = machines_of(option.gpus)
    gradients = 2 * (nodes - 1) / nodes * 2.0 * _trained(option.run)
    if layout.zero_stage < 3:
        return gradients
    passes = 2 * option.run.gradient_accumulation
    return gradients + passes * (nodes - 1) / nodes * 2.0 * count_parameters(option.run.shape).total


def serving_host(option: ServingOption, wish: ServingWish) -> tuple[Need, ...]:
    layout = option.run.layout
    size = weights(option.run).expected * layout.gpus
    return host_needs(
        HostLoad(
            gpus_per_node=min(option.gpus, GPUS_OF_A_MACHINE),
            nodes=machines_of(layout.gpus),
            weights=size,
            checkpoint=0.0,
            kept_checkpoints=0,
            checkpoint_interval_seconds=CHECKPOINT_SECONDS,
            dataset=0.0,
            read_rate=0.0,
            network_per_step=0.0,
            step_seconds=None,
            offloaded=0.0,
            serves_people=True,
            personal_data=wish.personal_data,
        )
    )
