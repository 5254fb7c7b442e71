"""What trainers print as they save, and what no checkpoint is."""

from __future__ import annotations

import pytest

from jobs.progress.checkpoints import Checkpoint, read_checkpoint


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Saving model checkpoint to out/checkpoint-500", 500),
        ("[INFO|trainer.py:3503] Saving model checkpoint to /data/run/checkpoint-12000", 12_000),
        ("  successfully saved checkpoint from iteration     750 to /ckpt [ t 1/1, p 1/1 ]", 750),
        ("[Torch] Saved checkpoint ckpt/global_step40/mp_rank_00_model_states.pt", 40),
        ("INFO:accelerate.accelerator:Saving current state to state/step_300", 300),
        ("Epoch 0, global step 64: 'val_loss' improved, saving model to 'last.ckpt'", 64),
        ("checkpoint saved: /nfs/ckpt/r3/checkpoint-21150 (4.9 GB, 9.2 s)", 21_150),
        ("Saved checkpoint.", None),
    ],
)
def test_saved(line, step):
    assert read_checkpoint(line) == Checkpoint(step)


@pytest.mark.parametrize(
    "line",
    [
        "Loading checkpoint shards: 100%",
        "Failed saving checkpoint: no space left on device",
        "Resuming from checkpoint-500",
        "checkpoints will be saved to out/",
        "step 10 loss 2.1",
    ],
)
def test_not_saved(line):
    assert read_checkpoint(line) is None
