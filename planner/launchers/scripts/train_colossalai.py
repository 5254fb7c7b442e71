"""Fine-tunes with ColossalAI: plugin.json names the plugin and what it is made with. `colossalai run` starts it."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import colossalai
import torch
from colossalai.booster import Booster, plugin
from colossalai.nn.optimizer import HybridAdam
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def main() -> None:
    options = arguments()
    colossalai.launch_from_torch(seed=1)
    settings = json.loads(Path(options.plugin).read_text(encoding="utf-8"))
    made = getattr(plugin, settings["plugin"])(**settings["arguments"])
    booster = Booster(plugin=made)
    train(options, booster, made)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dataset", required=True, help="a .jsonl file with text, or an id on the hub")
    parser.add_argument("--output", required=True)
    parser.add_argument("--sequence-length", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--gradient-accumulation", type=int, default=1)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--dtype", default="bf16", choices=list(DTYPES))
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--lora-rank", type=int, default=0)
    parser.add_argument("--lora-targets", default="q_proj,v_proj")
    return parser.parse_args()


def train(options: argparse.Namespace, booster: Booster, made) -> None:
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    pipelined = getattr(made, "pp_size", 1) > 1
    # A pipeline takes all micro-batches of a step at once and cuts them itself.
    batch = options.micro_batch * (options.gradient_accumulation if pipelined else 1)
    loader = made.prepare_dataloader(
        corpus(options, tokenizer), batch_size=batch, shuffle=True, drop_last=True, collate_fn=collate
    )
    model = load_model(options, booster)
    optimizer = HybridAdam([weight for weight in model.parameters() if weight.requires_grad], lr=options.learning_rate)
    accumulated = 1 if pipelined else options.gradient_accumulation
    steps = max(1, math.ceil(len(loader) // accumulated * options.epochs))
    schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(0.03 * steps), steps)
    model, optimizer, _, loader, schedule = booster.boost(model, optimizer, dataloader=loader, lr_scheduler=schedule)
    for step, loss in enumerate(
        losses(options, booster, model, optimizer, loader, steps, pipelined=pipelined), start=1
    ):
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if torch.distributed.get_rank() == torch.distributed.get_world_size() - 1:
            print(json.dumps({"step": step, "steps": steps, "loss": loss}), flush=True)
    save(options, booster, model)
    tokenizer.save_pretrained(Path(options.output) / "model")


def corpus(options: argparse.Namespace, tokenizer):
    """Sequences of exactly `sequence_length` tokens: examples are joined and cut."""
    source = Path(options.dataset)
    rows = (
        load_dataset("json", data_files=str(source), split="train")
        if source.is_file()
        else load_dataset(options.dataset, split="train")
    )
    length = options.sequence_length

    def pack(examples):
        joined = [
            number for text in examples["text"] for number in [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
        ]
        return {"input_ids": [joined[start : start + length] for start in range(0, len(joined) - length + 1, length)]}

    return rows.map(pack, batched=True, remove_columns=rows.column_names)


def collate(examples) -> dict[str, torch.Tensor]:
    ids = torch.tensor([example["input_ids"] for example in examples])
    return {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}


def load_model(options: argparse.Namespace, booster: Booster):
    model = AutoModelForCausalLM.from_pretrained(options.model, torch_dtype=DTYPES[options.dtype])
    model.config.use_cache = False
    if options.checkpointing:
        model.gradient_checkpointing_enable()
    if not options.lora_rank:
        return model
    from peft import LoraConfig

    adapters = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_rank,
        lora_alpha=2 * options.lora_rank,
        target_modules=options.lora_targets.split(","),
    )
    return booster.enable_lora(model, lora_config=adapters)


def losses(
    options: argparse.Namespace, booster: Booster, model, optimizer, loader: DataLoader, steps: int, *, pipelined: bool
):
    """One number for each optimizer step, after its backward pass."""
    done = 0
    while done < steps:
        batches = iter(loader)
        groups = len(loader) if pipelined else len(loader) // options.gradient_accumulation
        if not groups:
            raise SystemExit("The data makes fewer batches than one optimizer step takes.")
        for _ in range(min(groups, steps - done)):
            done += 1
            yield (
                pipeline_step(booster, model, optimizer, batches)
                if pipelined
                else plain_step(options, booster, model, optimizer, batches)
            )


def pipeline_step(booster: Booster, model, optimizer, batches) -> float | None:
    """Only the last stage knows the loss."""
    result = booster.execute_pipeline(batches, model, lambda output, _inputs: output.loss, optimizer, return_loss=True)
    return None if result["loss"] is None else float(result["loss"])


def plain_step(options: argparse.Namespace, booster: Booster, model, optimizer, batches) -> float:
    total = 0.0
    for _ in range(options.gradient_accumulation):
        batch = {name: tensor.cuda() for name, tensor in next(batches).items()}
        loss = model(**batch).loss / options.gradient_accumulation
        booster.backward(loss, optimizer)
        total += float(loss.detach())
    return total


def save(options: argparse.Namespace, booster: Booster, model) -> None:
    target = str(Path(options.output) / "model")
    if options.lora_rank:
        booster.save_lora_as_pretrained(model, target)
    else:
        booster.save_model(model, target, shard=True, use_safetensors=True)


if __name__ == "__main__":
    main()
