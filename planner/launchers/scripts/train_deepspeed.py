"""Fine-tunes with DeepSpeed ZeRO as deepspeed.json says (stage, buckets, offload). The `deepspeed` command starts it."""

from __future__ import annotations

import argparse
from pathlib import Path

import deepspeed
import finetune
import torch
import torch.distributed as dist
from transformers.integrations import HfDeepSpeedConfig


def arguments() -> argparse.Namespace:
    parser = finetune.parser()
    # The launcher of DeepSpeed adds this one.
    parser.add_argument("--local_rank", type=int, default=-1)
    return deepspeed.add_config_arguments(parser).parse_args()


def main() -> None:
    options = arguments()
    rank, local_rank, world = finetune.ranks()
    device = finetune.device_of(local_rank)
    deepspeed.init_distributed(finetune.backend())
    train(options, rank, world, device)


def train(options: argparse.Namespace, rank: int, world: int, device: torch.device) -> None:
    torch.manual_seed(options.seed)
    tokenizer = finetune.load_tokenizer(options.model)
    loader, sampler = finetune.load_batches(options, tokenizer, rank=rank, world=world)
    # As long as it lives, a model of stage 3 is read in parts: no process ever holds all of it.
    reading = HfDeepSpeedConfig(options.deepspeed_config)
    model = finetune.load_model(options, device if options.method == "qlora" else None)
    del reading
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    engine, _optimizer, _loader, _schedule = deepspeed.initialize(
        args=options,
        model=model,
        model_parameters=trained,
    )
    steps = finetune.steps_of(options, len(loader))
    done = load_checkpoint(options, engine)
    progress = finetune.Progress(options, rank=rank, world=world, steps=steps)
    for step, group in enumerate(finetune.groups(loader, sampler, options, steps, done), start=done + 1):
        set_rate(options, engine, step, steps)
        loss = one_step(engine, group)
        progress.tell(step, loss, group, engine.get_lr()[0])
        if options.save_every and step % options.save_every == 0:
            save_checkpoint(options, engine, step, rank)
    # Stage 3 gathers the weights in 16 bits; the checkpoint keeps what is needed to go on.
    engine.save_checkpoint(options.output, tag="last")
    save_model(options, engine, model, tokenizer, rank)


def one_step(engine, group) -> torch.Tensor:
    """DeepSpeed counts the micro-batches itself: it steps with the last one."""
    total = torch.zeros((), device=engine.device)
    for batch in group:
        moved = {name: tensor.to(engine.device, non_blocking=True) for name, tensor in batch.items()}
        loss = engine(**moved).loss
        engine.backward(loss)
        engine.step()
        total += loss.detach() / len(group)
    return total


def set_rate(options: argparse.Namespace, engine, step: int, steps: int) -> None:
    """In the script, so that one file of settings serves runs of any length."""
    for group in engine.optimizer.param_groups:
        group["lr"] = options.learning_rate * finetune.rate_share(step, steps, options.warmup_share)


def save_model(options: argparse.Namespace, engine, model, tokenizer, rank: int) -> None:
    state = engine._zero3_consolidated_16bit_state_dict() if engine.zero_optimization_stage() == 3 else None
    if rank == 0:
        finetune.save_model(options, model, state, tokenizer)
    dist.barrier()


def save_checkpoint(options: argparse.Namespace, engine, step: int, rank: int) -> None:
    tag = f"step-{step}"
    engine.save_checkpoint(options.output, tag=tag)
    if rank == 0:
        (Path(options.output) / tag / "finished").touch()
    dist.barrier()


def load_checkpoint(options: argparse.Namespace, engine) -> int:
    folder = finetune.newest_checkpoint(options.output)
    if folder is None:
        return 0
    engine.load_checkpoint(options.output, tag=folder.name)
    return int(folder.name.removeprefix("step-"))


if __name__ == "__main__":
    main()
