"""What lines of trainers say of their progress, in the shapes that each of them prints."""

from __future__ import annotations

import math

import pytest

from jobs.progress.point import Point
from jobs.progress.read import read_line

GIB = 1 << 30
LINES = {
    "trainer": ("{'loss': 1.84, 'grad_norm': 0.72, 'learning_rate': 4.8e-05, 'epoch': 0.04}", Point(loss=1.84, grad_norm=0.72, learning_rate=4.8e-05, epoch=0.04)),
    "trainer_v5": ("{'loss': '1.84', 'grad_norm': '0.72', 'learning_rate': '4.8e-05', 'epoch': '0.04'}", Point(loss=1.84, grad_norm=0.72, learning_rate=4.8e-05, epoch=0.04)),
    "trainer_eval": ("{'eval_loss': 1.31, 'eval_runtime': 8.4, 'eval_samples_per_second': 119.0, 'epoch': 1.0}", Point(eval_loss=1.31, epoch=1.0)),
    "trainer_end": ("{'train_runtime': 604.1, 'train_samples_per_second': 6.6, 'train_steps_per_second': 0.8, 'train_loss': 1.02, 'epoch': 3.0}", Point(loss=1.02, samples_per_second=6.6, epoch=3.0)),
    "json": ('{"step": 40, "steps": 900, "loss": 2.4, "learning_rate": 0.0002, "tokens_per_second": 8100.5, "peak_allocated_bytes": 1073741824}', Point(step=40, steps=900, loss=2.4, learning_rate=0.0002, tokens_per_second=8100.5, memory_bytes=GIB)),
    "bar": (" 31%|███       | 93/300 [01:44<05:50,  1.14s/it]", Point(step=93, steps=300, seconds_per_step=1.14)),
    "fast_bar": ("train:  50%|█████     | 500/1000 [00:50<00:50, 10.00it/s, loss=0.91]", Point(step=500, steps=1000, seconds_per_step=0.1, loss=0.91)),
    "written_over": ("  0%|  | 1/300 [00:01<05:50, 1.0s/it]\r  1%|  | 2/300 [00:03<06:10, 1.5s/it]", Point(step=2, steps=300, seconds_per_step=1.5)),
    "nemo": ("Epoch 0:  10%|█ | 10/100 [00:12<01:48, 0.83it/s, v_num=0, reduced_train_loss=7.2, global_step=9.000, train_step_timing in s=1.19]", Point(step=9, steps=100, loss=7.2, seconds_per_step=1.19)),
    "megatron": (
        (" [2026-11-30 12:00:00] iteration      120/   40000 | consumed samples:        30720 | elapsed time per iteration (ms): 2510.4 | throughput per GPU (TFLOP/s/GPU): 391.2 | "
        "learning rate: 1.450000E-04 | global batch size:   256 | lm loss: 5.102345E+00 | loss scale: 1.0 | grad norm: 0.914 | number of skipped iterations:   1 | number of nan iterations:   0 |"),
        Point(step=120, steps=40000, seconds_per_step=2.5104, tflops_per_gpu=391.2, learning_rate=1.45e-4, loss=5.102345, grad_norm=0.914, skipped_steps=1),
    ),
    "deepspeed_step": ("[2026-11-30 12:00:00,101] [INFO] [logging.py:96:log_dist] [Rank 0] step=70, skipped=2, lr=[2e-05, 2e-05], mom=[(0.9, 0.95)]", Point(step=70, skipped_steps=2, learning_rate=2e-05)),
    "deepspeed_speed": (
        "[2026-11-30 12:00:00,101] [INFO] [timer.py:260:stop] epoch=0/micro_step=140/global_step=70, RunningAvgSamplesPerSec=31.2, CurrSamplesPerSec=30.8, MemAllocated=9.5GB, MaxMemAllocated=16.0GB",
        Point(step=70, samples_per_second=30.8, memory_bytes=16 * GIB),
    ),
    "titan": ("\x1b[31mstep: 25  \x1b[32mloss:  6.4100  \x1b[33mgrad_norm:  1.9000  \x1b[34mmemory: 40.50GiB(51.2%)  tps: 7,140  tflops: 412.4  mfu: 41.7%", Point(step=25, loss=6.41, grad_norm=1.9, memory_bytes=round(40.5 * GIB), tokens_per_gpu=7140, tflops_per_gpu=412.4)),
    "nano": ("iter 860: loss 2.9120, time 231.50ms, mfu 38.20%", Point(step=860, loss=2.912, seconds_per_step=0.2315)),
    "own_loop": ("step 30/2000 loss=3.10 lr=1e-4 tok/s=21,400", Point(step=30, steps=2000, loss=3.1, learning_rate=1e-4, tokens_per_second=21400)),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_shapes_of_trainers(name: str) -> None:
    line, point = LINES[name]
    assert read_line(line) == point


@pytest.mark.parametrize(
    "line",
    [
        "",
        "step 2 of the installation",
        "Epoch: 3",
        "Traceback (most recent call last):",
        "INFO:     Started server process [1]",
        "Downloading shards:  50%|█████     | 1/2 [00:10<00:10, 10.0s/it]",
        "Loading checkpoint shards: 100%|██████████| 4/4 [00:08<00:00,  2.1s/it]",
        "Map:  12%|█▏        | 1200/10000 [00:01<00:09, 950.0 examples/s]",
        "{'loss': 'high', 'epoch': 'first'}",
        "{" * 5000,
        "no loss of data: nothing was written",
    ],
)
def test_what_says_nothing_of_progress(line: str) -> None:
    assert not read_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.3}",
        "step 5 loss nan",
        '{"step": 5, "loss": NaN}',
    ],
)
def test_a_loss_that_is_no_number_stays_one_that_is_none(line: str) -> None:
    point = read_line(line)
    assert point is not None
    assert point.loss is not None
    assert math.isnan(point.loss)


def test_a_line_without_end_costs_no_more_than_its_beginning() -> None:
    assert read_line("step 5 loss 2.0 " + "x" * 5_000_000) == Point(step=5, loss=2.0)


@pytest.mark.parametrize("name", ["trainer", "megatron", "nano"])
def test_it_can_be_put_on_an_axis(name: str) -> None:
    point = read_line(LINES[name][0])
    assert point is not None
    assert point.is_progress


@pytest.mark.parametrize(
    "line",
    [
        "step " + "9" * 40 + "/" + "9" * 4000 + " loss=2.5",
        "loss=2.5 memory: infGiB",
        "{'loss': 2.5, 'step': 1e400, 'memory': 1e300}",
        "loss=2.5 step=-4",
        "{[1]: 2} loss=2.5",
    ],
)
def test_numbers_that_nobody_counted_to_are_left_out(line):
    point = read_line(line)
    assert point is not None
    assert (point.loss, point.step, point.steps, point.memory_bytes) == (2.5, None, None, None)
