"""What one line of a log says about how far a run is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Point"]


@dataclass(frozen=True, slots=True)
class Point:
    """None = the line does not say. `loss` is of training, `eval_loss` of an evaluation; rates are per second, of the whole run.

    `tokens_per_gpu`: tokens a second of one GPU, where a trainer prints only that. `tflops_per_gpu` is what the trainer itself reckons.
    """

    step: int | None = None
    steps: int | None = None
    epoch: float | None = None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    seconds_per_step: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    tokens_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    memory_bytes: int | None = None
    skipped_steps: int | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) is not None for one in fields(self))

    @property
    def is_progress(self) -> bool:
        """Whether it can be put on an axis: it says where the run is."""
        return self.step is not None or self.epoch is not None
