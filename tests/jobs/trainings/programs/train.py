"""A tiny model trained by several processes over gloo: `torchrun … train.py STEPS` or `accelerate launch … train.py STEPS --accelerate`.

It says its step, loss and step time as people's own loops do, and goes on from the checkpoint in RACKRENT_CHECKPOINTS.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
from torch import nn


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("steps", type=int)
    arguments.add_argument("--accelerate", action="store_true")
    arguments.add_argument("--seconds", type=float, default=0.0)
    asked = arguments.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    train(*(prepared(model) if asked.accelerate else wrapped(model)), asked.steps, asked.seconds)


def wrapped(model: nn.Module):
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
    return parallel, optimizer, torch.Tensor.backward, torch.distributed.get_rank(), torch.distributed.get_world_size()


def prepared(model: nn.Module):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    parallel, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.05))
    return parallel, optimizer, accelerator.backward, accelerator.process_index, accelerator.num_processes


def train(model, optimizer, backward, rank: int, ranks: int, steps: int, seconds: float) -> None:
    saved = Path(os.environ.get("RACKRENT_CHECKPOINTS", ".")) / f"rank-{rank}.pt"
    first = torch.load(saved)["step"] + 1 if saved.exists() else 1
    print(f"rank {rank} of {ranks} begins at {first}")
    for step in range(first, steps + 1):
        began = time.perf_counter()
        batch = torch.randn(32, 8)
        loss = ((model(batch) - batch.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        backward(loss)
        optimizer.step()
        time.sleep(seconds)
        torch.save({"step": step}, saved)
        if rank == 0:
            print(f"step {step}/{steps} loss={loss.item():.4f} step_time={time.perf_counter() - began:.4f}")


if __name__ == "__main__":
    main()
