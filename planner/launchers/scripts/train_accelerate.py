"""Fine-tunes through Hugging Face Accelerate: `accelerate launch --config_file accelerate.yaml` decides between DDP, FSDP2 and DeepSpeed."""

from __future__ import annotations

import argparse
from pathlib import Path

import finetune
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, set_seed


def arguments() -> argparse.Namespace:
    return finetune.parser().parse_args()


def main() -> None:
    options = arguments()
    set_seed(options.seed)
    accelerator = Accelerator(gradient_accumulation_steps=options.gradient_accumulation)
    train(options, accelerator)
    accelerator.end_training()


def train(options: argparse.Namespace, accelerator: Accelerator) -> None:
    rank, world = accelerator.process_index, accelerator.num_processes
    tokenizer = finetune.load_tokenizer(options.model)
    # The sampler of this script already gives each process its own part: the loader is not prepared again.
    loader, sampler = finetune.load_batches(options, tokenizer, rank=rank, world=world)
    # What FSDP splits is read by one process and handed out; everything else goes straight to its GPU.
    split = accelerator.distributed_type == DistributedType.FSDP
    model = finetune.load_model(options, None if split else accelerator.device)
    optimizer = finetune.make_optimizer(options, model)
    steps = finetune.steps_of(options, len(loader))
    schedule = finetune.make_schedule(options, optimizer, steps)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(schedule)
    done = load_checkpoint(options, accelerator)
    progress = finetune.Progress(options, rank=rank, world=world, steps=steps)
    for step, group in enumerate(finetune.groups(loader, sampler, options, steps, done), start=done + 1):
        loss = one_step(options, accelerator, model, optimizer, group)
        progress.tell(step, loss, group, schedule.get_last_lr()[0])
        schedule.step()
        if options.save_every and step % options.save_every == 0:
            save_checkpoint(options, accelerator, step)
    state = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        finetune.save_model(options, accelerator.unwrap_model(model), state, tokenizer)
    accelerator.wait_for_everyone()


def one_step(options: argparse.Namespace, accelerator: Accelerator, model, optimizer, group) -> torch.Tensor:
    total = torch.zeros((), device=accelerator.device)
    for batch in group:
        moved = {name: tensor.to(accelerator.device, non_blocking=True) for name, tensor in batch.items()}
        # Accelerate divides the loss and sends gradients with the last batch.
        with accelerator.accumulate(model):
            loss = model(**moved).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), options.clip)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.detach() / len(group)
    return total


def save_checkpoint(options: argparse.Namespace, accelerator: Accelerator, step: int) -> None:
    folder = Path(options.output) / f"step-{step}"
    accelerator.save_state(str(folder))
    if accelerator.is_main_process:
        (folder / "finished").touch()
    accelerator.wait_for_everyone()


def load_checkpoint(options: argparse.Namespace, accelerator: Accelerator) -> int:
    folder = finetune.newest_checkpoint(options.output)
    if folder is None:
        return 0
    accelerator.load_state(str(folder))
    return int(folder.name.removeprefix("step-"))


if __name__ == "__main__":
    main()
