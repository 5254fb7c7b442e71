"""Every layout of a training run that fits on a GPU, with its memory, its time and its money."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Network, network_for, nvlink_domain
from planner.choice.advice import StepKey, step_of
from planner.choice.launchable import is_launchable
from planner.choice.layouts import counts_up_to, offloading_layouts, training_layouts
from planner.choice.prices import HourlyPrice, hourly_price
from planner.estimates import MemoryEstimate
from planner.memory.training import training_memory
from planner.runs import Checkpointing, Layout, TrainingEngine, TrainingRun
from planner.speed.training import TrainingSpeed, training_speed
from planner.speed.whole_run import GPUS_OF_A_MACHINE, Machine, Plan, WholeRun, whole_run
from planner.wishes import Market, TrainingWish

# "tight": the expected bytes fit, the high end of the estimate does not.
Fit = Literal["fits", "tight"]
# More sequences at a time don't make a GPU busier.
MICRO_BATCHES = (1, 2, 4, 8, 16, 32)
RunKey = tuple[Layout, Checkpointing, int]


# Around the GPUs, until a machine is chosen: a local NVMe disk behind a file system, and a gigabit to the internet.
USUAL_READ, USUAL_WRITE, USUAL_INTERNET = 1.5e9, 1e9, 1e9 / 8
CORES_PER_GPU = 8
# A checkpoint this often, at most.
CHECKPOINT_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class TrainingOption:
    """One way to do the run. `cost` is None where no price is known."""

    gpu: Gpu
    run: TrainingRun
    memory: MemoryEstimate
    fit: Fit
    speed: TrainingSpeed
    whole: WholeRun
    price: HourlyPrice | None

    @property
    def gpus(self) -> int:
        return self.run.layout.gpus

    @property
    def step(self) -> StepKey:
        return step_of(self.run.layout, micro_batch=self.run.micro_batch)

    @property
    def hours(self) -> float:
        return self.whole.time.expected / 3600

    @property
    def cost(self) -> Decimal | None:
        return None if self.price is None else self.whole.cost(self.price.per_hour)[1]


@dataclass(slots=True)
class TrainingSearch:
    """Remembers estimates: the memory of a run is the same on every GPU that is big enough, but for a library's workspace."""

    wish: TrainingWish
    market: Market
    _memory: dict[RunKey, MemoryEstimate] = field(default_factory=dict)
    _layouts: dict[tuple[int, int], list[Layout]] = field(default_factory=dict)
    _least: dict[Layout, float] = field(default_factory=dict)

    def counts(self) -> list[int]:
        return counts_up_to(self.market.most_gpus)

    def options(self, gpu: Gpu, count: int) -> Iterator[TrainingOption]:
        """The fastest way of each layout that fits, in the order of the advice."""
        yield from self.timed(gpu, count, self.feasible(gpu, count))

    def promising(self, gpu: Gpu, *, counts: int = 2) -> Iterator[TrainingOption]:
        """The layouts that can be the best of this GPU: the first of each step of the advice, on the counts that the priority is about.

        GPU-hours only grow with the number of GPUs, so that the fewest that fit cost least and the most take the shortest time.
        """
        fitting = [count for count in self.counts() if self.feasible(gpu, count)]
        chosen = fitting[-counts:] if self.market.priority == "time" else fitting[:counts]
        if self.wish.deadline_hours is not None:
            chosen = fitting
        for count in chosen:
            yield from self.timed(gpu, count, _first_of_each_step(self.feasible(gpu, count)))

    def layouts(self, count: int, domain: int) -> list[Layout]:
        """Every way to use exactly `count` GPUs that some launcher starts, whether it fits or not."""
        wish, key = self.wish, (count, domain)
        if key not in self._layouts:
            divided = (layout for layout in self._every_layout(count, domain) if wish.global_batch % layout.data == 0)
            self._layouts[key] = [layout for layout in divided if is_launchable(self._smallest(layout))]
        return self._layouts[key]

    def _every_layout(self, count: int, domain: int) -> Iterator[Layout]:
        wish = self.wish
        if wish.offload != "none":
            return offloading_layouts(gpus=count, global_batch=wish.global_batch, offload=wish.offload)
        return training_layouts(
            wish.shape,
            method=wish.method,
            sequence_length=wish.sequence_length,
            global_batch=wish.global_batch,
            gpus=count,
            domain=domain,
        )

    def feasible(self, gpu: Gpu, count: int) -> list[Layout]:
        """The layouts whose smallest run fits."""
        layouts = self.layouts(count, nvlink_domain(gpu))
        return [layout for layout in layouts if self.least(layout) <= gpu.memory_bytes]

    def least(self, layout: Layout) -> float:
        """Bytes of this layout with one sequence at a time and all that can be computed again computed again."""
        if layout not in self._least:
            self._least[layout] = self.memory(layout, self._checkpointing()[-1], 1).expected()
        return self._least[layout]

    def _smallest(self, layout: Layout) -> TrainingRun:
        return training_run(self.wish, layout, self._checkpointing()[-1], 1)

    def runs(self, layout: Layout, gpu: Gpu) -> Iterator[TrainingRun]:
        """For each kind of checkpointing, the largest micro-batch that surely fits; where none does, one sequence that probably fits.

        More checkpointing only where that makes the micro-batch larger.
        """
        largest = 0
        kinds = self._checkpointing()
        for checkpointing in kinds:
            micro_batch = self._largest_micro_batch(layout, checkpointing, gpu.memory_bytes)
            if micro_batch > largest:
                largest = micro_batch
                yield training_run(self.wish, layout, checkpointing, micro_batch)
        if not largest and self._micro_batches(layout) and self.least(layout) <= gpu.memory_bytes:
            yield training_run(self.wish, layout, kinds[-1], 1)

    def _checkpointing(self) -> tuple[Checkpointing, ...]:
        """What may be tried, least recomputing first. Selective recomputation drops what flash attention never keeps."""
        if self.wish.checkpointing:
            return (self.wish.checkpointing,)
        return ("none", "selective", "full") if self.wish.attention == "eager" else ("none", "full")

    def memory(self, layout: Layout, checkpointing: Checkpointing, micro_batch: int) -> MemoryEstimate:
        key = (layout, checkpointing, micro_batch)
        if key not in self._memory:
            self._memory[key] = training_memory(training_run(self.wish, layout, checkpointing, micro_batch))
        return self._memory[key]

    def _largest_micro_batch(self, layout: Layout, checkpointing: Checkpointing, capacity: int) -> int:
        """By the high end of the estimate; 0 where not one sequence fits. By halves: memory grows with the sequences."""
        sizes = self._micro_batches(layout)
        low, high = 0, len(sizes)
        while low < high:
            middle = (low + high) // 2
            if self.memory(layout, checkpointing, sizes[middle]).high() <= capacity:
                low = middle + 1
            else:
                high = middle
        return sizes[low - 1] if low else 0

    def _micro_batches(self, layout: Layout) -> list[int]:
        """A pipeline needs a micro-batch for each of its stages."""
        each = self.wish.global_batch // layout.data
        return [size for size in MICRO_BATCHES if each % size == 0 and each // size >= layout.pipeline]

    def timed(self, gpu: Gpu, count: int, layouts: list[Layout]) -> Iterator[TrainingOption]:
        """The fastest way of each of `layouts` that fits."""
        network = network_for(gpu, self.market.link)
        price = hourly_price(gpu.id, count, self.market)
        for layout in layouts:
            timed = [self._option(gpu, run, network, price) for run in self.runs(layout, gpu)]
            if timed:
                yield min(timed, key=lambda option: option.speed.step.expected)

    def _option(self, gpu: Gpu, run: TrainingRun, network: Network, price: HourlyPrice | None) -> TrainingOption:
        memory = self.memory(run.layout, run.checkpointing, run.micro_batch)
        speed = training_speed(self._as_read(run), gpu, network)
        return TrainingOption(
            gpu=gpu,
            run=run,
            memory=memory,
            fit="fits" if memory.high() <= gpu.memory_bytes else "tight",
            speed=speed,
            whole=whole_run(run, speed, _schedule(self.wish, speed), _machine(run)),
            price=price,
        )

    def _as_read(self, run: TrainingRun) -> TrainingRun:
        """Sequences that are not packed are as long as a sample on average; the longest ones only set the memory."""
        if self.wish.packed:
            return run
        return replace(run, sequence_length=min(self.wish.tokens_per_sample, run.sequence_length))


def _schedule(wish: TrainingWish, speed: TrainingSpeed) -> Plan:
    return Plan(
        tokens=wish.samples * min(wish.tokens_per_sample, wish.sequence_length),
        epochs=wish.epochs,
        checkpoint_steps=max(1, round(CHECKPOINT_SECONDS / speed.step.expected)),
    )


def _machine(run: TrainingRun) -> Machine:
    cores = CORES_PER_GPU * min(run.layout.gpus, GPUS_OF_A_MACHINE)
    return Machine(USUAL_READ, USUAL_WRITE, USUAL_INTERNET, cores)


def _first_of_each_step(layouts: list[Layout]) -> list[Layout]:
    first: dict[StepKey, Layout] = {}
    for layout in layouts:
        first.setdefault(step_of(layout, micro_batch=1), layout)
    return list(first.values())


def engine_of(layout: Layout) -> TrainingEngine:
    """The framework that does this layout with the least change to a script: the Trainer as far as it goes, with DDP or FSDP."""
    if layout.tensor * layout.pipeline * layout.context > 1:
        return "megatron"
    return "deepspeed" if layout.zero_stage in {1, 2} else "transformers"


def training_run(wish: TrainingWish, layout: Layout, checkpointing: Checkpointing, micro_batch: int) -> TrainingRun:
    return TrainingRun(
        shape=wish.shape,
        method=wish.method,
        engine="deepspeed" if wish.offload != "none" else engine_of(layout),
        layout=layout,
        sequence_length=wish.sequence_length,
        micro_batch=micro_batch,
        gradient_accumulation=wish.global_batch // layout.data // micro_batch,
        compute_dtype=wish.compute_dtype,
        weight_format=wish.weight_format,
        master_weights=wish.master_weights,
        optimizer=wish.optimizer,
        lora=wish.lora,
        checkpointing=checkpointing,
        attention=wish.attention,
        logits=wish.logits,
        compiled=wish.compiled,
        packed=wish.packed,
        optimizer_offload=wish.offload != "none",
        parameter_offload=wish.offload == "all",
    )
