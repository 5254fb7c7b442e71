"""Fine-tunes with one copy of the model on every GPU (DDP); with --shard-optimizer each keeps a part of the optimizer (ZeRO 1).

torchrun starts it, also on one GPU. A run that was stopped goes on from its newest checkpoint.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

import finetune
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def arguments() -> argparse.Namespace:
    parser = finetune.parser()
    parser.add_argument("--shard-optimizer", action=argparse.BooleanOptionalAction, default=False)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    rank, local_rank, world = finetune.ranks()
    device = finetune.device_of(local_rank)
    dist.init_process_group(finetune.backend())
    try:
        train(options, rank, world, device)
    finally:
        dist.destroy_process_group()


def train(options: argparse.Namespace, rank: int, world: int, device: torch.device) -> None:
    torch.manual_seed(options.seed)
    tokenizer = finetune.load_tokenizer(options.model)
    loader, sampler = finetune.load_batches(options, tokenizer, rank=rank, world=world)
    loss_model = finetune.LossModel(finetune.load_model(options, device), chunked=options.chunked_loss).to(device)
    model = DistributedDataParallel(loss_model, device_ids=[device.index] if device.type == "cuda" else None)
    if options.compile:
        model.compile()
    optimizer = make_optimizer(options, loss_model)
    steps = finetune.steps_of(options, len(loader))
    schedule = finetune.make_schedule(options, optimizer, steps)
    scaler = torch.amp.GradScaler(device.type, enabled=options.dtype == "fp16")
    done = load_checkpoint(options, loss_model, optimizer, schedule, device)
    progress = finetune.Progress(options, rank=rank, world=world, steps=steps)
    for step, group in enumerate(finetune.groups(loader, sampler, options, steps, done), start=done + 1):
        loss = one_step(options, model, optimizer, scaler, group, device)
        progress.tell(step, loss, group, schedule.get_last_lr()[0])
        schedule.step()
        if options.save_every and step % options.save_every == 0:
            save_checkpoint(options, loss_model, optimizer, schedule, step, rank)
    if rank == 0:
        finetune.save_model(options, loss_model.model, None, tokenizer)
    dist.barrier()


def make_optimizer(options: argparse.Namespace, model: torch.nn.Module) -> torch.optim.Optimizer:
    if not options.shard_optimizer:
        return finetune.make_optimizer(options, model)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return ZeroRedundancyOptimizer(
        trained, torch.optim.AdamW, lr=options.learning_rate, weight_decay=options.weight_decay
    )


def one_step(options, model, optimizer, scaler, group, device) -> torch.Tensor:
    total = torch.zeros((), device=device)
    for index, batch in enumerate(group):
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
        # Gradients travel once per optimizer step, with its last batch.
        with nullcontext() if index == len(group) - 1 else model.no_sync():
            with torch.autocast(device.type, finetune.DTYPES[options.dtype], enabled=options.dtype != "fp32"):
                loss = model(**moved) / len(group)
            scaler.scale(loss).backward()
        total += loss.detach()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return total


def trained_state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Only what training changes: with adapters that is a small part."""
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    return {name: tensor for name, tensor in model.state_dict().items() if name in trained}


def save_checkpoint(options, model, optimizer, schedule, step: int, rank: int) -> None:
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        folder = Path(options.output) / f"step-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "model": trained_state(model),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "step": step,
        }
        torch.save(state, folder / "state.pt")
        (folder / "finished").touch()
    dist.barrier()


def load_checkpoint(options, model, optimizer, schedule, device) -> int:
    folder = finetune.newest_checkpoint(options.output)
    if folder is None:
        return 0
    state = torch.load(folder / "state.pt", map_location=device, weights_only=True)
    model.load_state_dict(state["model"], strict=False)
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    return int(state["step"])


if __name__ == "__main__":
    main()
