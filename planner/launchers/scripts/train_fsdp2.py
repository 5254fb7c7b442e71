"""Fine-tunes with weights, gradients and optimizer in parts on all GPUs (FSDP2): whole again layer by layer, while it is computed.

--keep-gathered keeps a layer's weights from forward to backward (ZeRO 2: less traffic, more memory). torchrun starts it. A run that was
stopped goes on from its newest checkpoint, also on another number of GPUs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import finetune
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard


def arguments() -> argparse.Namespace:
    parser = finetune.parser()
    parser.add_argument("--keep-gathered", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--offload", action=argparse.BooleanOptionalAction, default=False)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    rank, local_rank, world = finetune.ranks()
    device = finetune.device_of(local_rank)
    # With offload the gradients' norm is summed on the CPU.
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    try:
        train(options, rank, world, device)
    finally:
        dist.destroy_process_group()


def load_split(options: argparse.Namespace, rank: int, world: int, device: torch.device) -> finetune.LossModel:
    """Rank 0 alone reads the weights and hands out the parts: the machine's memory holds the model once, not once for each GPU."""
    source = finetune.LossModel(finetune.load_model(options), chunked=options.chunked_loss) if rank == 0 else None
    with torch.device("meta"):
        model = finetune.LossModel(finetune.load_model(options, empty=True), chunked=options.chunked_loss)
    shard(options, model, world, device)
    model.to_empty(device="cpu" if options.offload else device)
    state = source.state_dict() if source else {}
    set_model_state_dict(model, state, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    model.model.tie_weights()
    copy_buffers(model, source, device)
    return model


def copy_buffers(model: finetune.LossModel, source: finetune.LossModel | None, device: torch.device) -> None:
    """Tables such as the frequencies of rotary positions are in no state: they go from rank 0 to all one by one."""
    theirs = dict(source.named_buffers()) if source else {}
    for name, buffer in list(model.named_buffers()):
        value = theirs[name].to(device) if source else torch.empty_like(buffer, device=device)
        dist.broadcast(value, src=0)
        owner, _, leaf = name.rpartition(".")
        model.get_submodule(owner)._buffers[leaf] = value


def shard(options: argparse.Namespace, model: finetune.LossModel, world: int, device: torch.device) -> None:
    """Each decoder layer is one unit; what is left (embeddings, norm, head) is the outermost."""
    mesh = init_device_mesh(device.type, (world,))
    dtype = finetune.DTYPES[options.dtype]
    settings = {
        "mesh": mesh,
        "mp_policy": MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32),
        "offload_policy": CPUOffloadPolicy() if options.offload else OffloadPolicy(),
        "reshard_after_forward": not options.keep_gathered,
    }
    layers = [module for module in model.modules() if type(module).__name__ in decoder_layers(model)]
    for layer in layers:
        if options.compile:
            layer.compile()
        fully_shard(layer, **settings)
    fully_shard(model, **settings)


def decoder_layers(model: finetune.LossModel) -> set[str]:
    whole = model.model.get_base_model() if hasattr(model.model, "get_base_model") else model.model
    return set(whole._no_split_modules or ())


def train(options: argparse.Namespace, rank: int, world: int, device: torch.device) -> None:
    torch.manual_seed(options.seed)
    tokenizer = finetune.load_tokenizer(options.model)
    loader, sampler = finetune.load_batches(options, tokenizer, rank=rank, world=world)
    model = load_split(options, rank, world, device)
    optimizer = finetune.make_optimizer(options, model)
    steps = finetune.steps_of(options, len(loader))
    schedule = finetune.make_schedule(options, optimizer, steps)
    done = load_checkpoint(options, model, optimizer, schedule)
    progress = finetune.Progress(options, rank=rank, world=world, steps=steps)
    for step, group in enumerate(finetune.groups(loader, sampler, options, steps, done), start=done + 1):
        loss = one_step(options, model, optimizer, group, device)
        progress.tell(step, loss, group, schedule.get_last_lr()[0])
        schedule.step()
        if options.save_every and step % options.save_every == 0:
            save_checkpoint(options, model, optimizer, schedule, step, rank)
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        finetune.save_model(
            options, model.model, {name.removeprefix("model."): part for name, part in state.items()}, tokenizer
        )
    dist.barrier()


def one_step(options, model: FSDPModule, optimizer, group, device) -> torch.Tensor:
    total = torch.zeros((), device=device)
    for index, batch in enumerate(group):
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
        # Gradients travel once per optimizer step, with its last batch.
        model.set_requires_gradient_sync(index == len(group) - 1)
        loss = model(**moved) / len(group)
        loss.backward()
        total += loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total


def save_checkpoint(options, model, optimizer, schedule, step: int, rank: int) -> None:
    """Every rank writes its own part."""
    folder = Path(options.output) / f"step-{step}"
    weights, states = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": states, "schedule": schedule.state_dict()}, checkpoint_id=folder)
    if rank == 0:
        (folder / "finished").touch()
    dist.barrier()


def load_checkpoint(options, model, optimizer, schedule) -> int:
    folder = finetune.newest_checkpoint(options.output)
    if folder is None:
        return 0
    weights, states = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": states, "schedule": schedule.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    return int(folder.name.removeprefix("step-"))


if __name__ == "__main__":
    main()
