"""What the training scripts beside this file share: arguments, data, model, optimizer, and how progress is told."""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from datasets import Dataset, load_dataset
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
IGNORED = -100
# Positions whose logits are held at a time when the loss is computed in chunks.
CHUNK = 1024


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--model", required=True, help="id on the Hugging Face hub, or a directory")
    made.add_argument(
        "--dataset",
        required=True,
        help="a .jsonl file with text, messages, or prompt and completion; or an id on the hub",
    )
    made.add_argument("--output", required=True, help="directory for checkpoints and the finished model")
    made.add_argument("--sequence-length", type=int, default=2048)
    made.add_argument("--micro-batch", type=int, default=1, help="sequences per GPU and forward pass")
    made.add_argument("--gradient-accumulation", type=int, default=1)
    made.add_argument("--epochs", type=float, default=1.0)
    made.add_argument("--max-steps", type=int, default=0, help="stop here; 0: all epochs")
    made.add_argument("--learning-rate", type=float, default=2e-5)
    made.add_argument("--warmup-share", type=float, default=0.03)
    made.add_argument("--weight-decay", type=float, default=0.0)
    made.add_argument("--clip", type=float, default=1.0)
    made.add_argument(
        "--optimizer",
        default="adamw",
        choices=["adamw", "adamw-8bit", "adamw-8bit-paged", "adafactor", "sgd", "sgd-momentum"],
    )
    made.add_argument("--dtype", default="bf16", choices=list(DTYPES))
    made.add_argument("--master-weights", action=argparse.BooleanOptionalAction, default=True)
    made.add_argument("--method", default="full", choices=["full", "lora", "qlora"])
    made.add_argument("--lora-rank", type=int, default=16)
    made.add_argument("--lora-targets", default="q_proj,v_proj", help="names of linear layers, with commas")
    made.add_argument("--lora-whole", default="", help="names of layers trained beside the adapters")
    made.add_argument("--attention", default="sdpa", choices=["eager", "sdpa"])
    made.add_argument("--checkpointing", action=argparse.BooleanOptionalAction, default=False)
    made.add_argument("--chunked-loss", action=argparse.BooleanOptionalAction, default=False)
    made.add_argument("--packed", action=argparse.BooleanOptionalAction, default=True)
    made.add_argument("--compile", action=argparse.BooleanOptionalAction, default=False)
    made.add_argument("--workers", type=int, default=2)
    made.add_argument("--log-every", type=int, default=10)
    made.add_argument(
        "--save-every", type=int, default=500, help="optimizer steps between checkpoints; 0: only at the end"
    )
    made.add_argument("--seed", type=int, default=1)
    return made


def device_of(local_rank: int) -> torch.device:
    """The GPU of this process; without any, the CPU, which is enough to try the script on a small model."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def backend() -> str:
    return "nccl" if torch.cuda.is_available() else "gloo"


def load_tokenizer(name: str):
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def tokens_of(example: dict, tokenizer) -> dict[str, list[int]]:
    """Token ids and labels of one example; a prompt is read, and only its completion is learned."""
    if example.get("messages"):
        ids = tokenizer.apply_chat_template(example["messages"], tokenize=True, return_dict=False)
        return {"input_ids": list(ids), "labels": list(ids)}
    if example.get("completion"):
        prompt = tokenizer(example["prompt"], add_special_tokens=True)["input_ids"]
        answer = tokenizer(example["completion"], add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
        return {"input_ids": prompt + answer, "labels": [IGNORED] * len(prompt) + answer}
    ids = tokenizer(example["text"])["input_ids"] + [tokenizer.eos_token_id]
    return {"input_ids": ids, "labels": list(ids)}


def load_corpus(options: argparse.Namespace, tokenizer) -> Dataset:
    """Sequences of at most `sequence_length` tokens; packed, they are all exactly so long."""
    source = Path(options.dataset)
    rows = (
        load_dataset("json", data_files=str(source), split="train")
        if source.is_file()
        else load_dataset(options.dataset, split="train")
    )
    corpus = rows.map(lambda example: tokens_of(example, tokenizer), remove_columns=rows.column_names)
    if not options.packed:
        return corpus.map(lambda example: {name: ids[: options.sequence_length] for name, ids in example.items()})
    return corpus.map(lambda examples: pack(examples, options.sequence_length), batched=True, batch_size=1000)


def pack(examples: dict[str, list[list[int]]], length: int) -> dict[str, list[list[int]]]:
    """Joins the examples of a batch and cuts the whole into pieces of `length`; what is left over at its end is dropped."""
    packed = {}
    for name, lists in examples.items():
        joined = [number for numbers in lists for number in numbers]
        packed[name] = [joined[start : start + length] for start in range(0, len(joined) - length + 1, length)]
    return packed


def collate(examples: list[dict[str, list[int]]], padding: int) -> dict[str, torch.Tensor]:
    longest = max(len(example["input_ids"]) for example in examples)

    def padded(name: str, value: int) -> torch.Tensor:
        return torch.tensor([example[name] + [value] * (longest - len(example[name])) for example in examples])

    mask = torch.tensor([[1] * len(each["input_ids"]) + [0] * (longest - len(each["input_ids"])) for each in examples])
    return {"input_ids": padded("input_ids", padding), "labels": padded("labels", IGNORED), "attention_mask": mask}


def load_batches(
    options: argparse.Namespace, tokenizer, *, rank: int, world: int
) -> tuple[DataLoader, DistributedSampler]:
    """The batches of this rank. Every rank sees another part of the data; the sampler's epoch sets the order."""
    corpus = load_corpus(options, tokenizer)
    if len(corpus) < world * options.micro_batch:
        raise SystemExit(f"{options.dataset} makes {len(corpus)} sequences, fewer than one batch on {world} processes")
    sampler = DistributedSampler(corpus, num_replicas=world, rank=rank, shuffle=True, seed=options.seed, drop_last=True)
    loader = DataLoader(
        corpus,
        batch_size=options.micro_batch,
        sampler=sampler,
        num_workers=options.workers,
        pin_memory=torch.cuda.is_available(),
        drop_last=True,
        collate_fn=lambda examples: collate(examples, tokenizer.pad_token_id),
    )
    return loader, sampler


def load_model(options: argparse.Namespace, device: torch.device | None = None, *, empty: bool = False) -> nn.Module:
    """The model with its adapters, if any; on `device` without a copy in the machine's memory, or `empty`, without weights.

    With master weights all of it is fp32 and autocast computes in `dtype`.
    """
    trained_in_full = options.method == "full" and options.master_weights
    settings = {
        "dtype": torch.float32 if trained_in_full else DTYPES[options.dtype],
        "attn_implementation": options.attention,
    }
    if empty:
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(options.model), **settings)
    else:
        quantization = four_bits(options.dtype) if options.method == "qlora" else None
        place = {"": device} if device else None
        model = AutoModelForCausalLM.from_pretrained(
            options.model, quantization_config=quantization, device_map=place, **settings
        )
    model.config.use_cache = False
    if options.checkpointing:
        model.activation_checkpointing_enable()
    return model if options.method == "full" else with_adapters(model, options)


def four_bits(dtype: str) -> BitsAndBytesConfig:
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=DTYPES[dtype],
    )


def with_adapters(model: nn.Module, options: argparse.Namespace) -> nn.Module:
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    if options.method == "qlora":
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=options.checkpointing)
    adapters = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_rank,
        lora_alpha=2 * options.lora_rank,
        target_modules=options.lora_targets.split(","),
        modules_to_save=options.lora_whole.split(",") if options.lora_whole else None,
    )
    return get_peft_model(model, adapters)


class LossModel(nn.Module):
    """The model and its loss as one module, so that a wrapper sees one forward pass that gives one number."""

    def __init__(self, model: nn.Module, *, chunked: bool) -> None:
        super().__init__()
        self.model = model
        self.chunked = chunked

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        if not self.chunked:
            return self.model(input_ids=input_ids, labels=labels, attention_mask=attention_mask).loss
        whole = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        hidden = whole.get_decoder()(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return chunked_loss(hidden, whole.get_output_embeddings(), labels)


def chunked_loss(hidden: torch.Tensor, head: nn.Module, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the next token without ever holding the logits of all positions; backward computes each chunk again."""
    states = hidden[:, :-1].flatten(0, 1)
    targets = labels[:, 1:].flatten()
    total = states.new_zeros((), dtype=torch.float32)
    for start in range(0, len(targets), CHUNK):
        piece = slice(start, start + CHUNK)
        total = total + torch.utils.checkpoint.checkpoint(
            _loss_sum, states[piece], head, targets[piece], use_reentrant=False
        )
    return total / (targets != IGNORED).sum().clamp(min=1)


def _loss_sum(states: torch.Tensor, head: nn.Module, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(head(states).float(), targets, ignore_index=IGNORED, reduction="sum")


def make_optimizer(options: argparse.Namespace, model: nn.Module) -> torch.optim.Optimizer:
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    rate, decay = options.learning_rate, options.weight_decay
    if options.optimizer.startswith("adamw-8bit"):
        from bitsandbytes.optim import AdamW8bit, PagedAdamW8bit

        kind = PagedAdamW8bit if options.optimizer.endswith("paged") else AdamW8bit
        return kind(trained, lr=rate, weight_decay=decay)
    if options.optimizer == "adafactor":
        return torch.optim.Adafactor(trained, lr=rate, weight_decay=decay)
    if options.optimizer.startswith("sgd"):
        return torch.optim.SGD(
            trained, lr=rate, weight_decay=decay, momentum=0.9 if "momentum" in options.optimizer else 0.0
        )
    return torch.optim.AdamW(trained, lr=rate, weight_decay=decay)


def steps_of(options: argparse.Namespace, batches: int) -> int:
    steps = math.ceil(batches // options.gradient_accumulation * options.epochs)
    return min(steps, options.max_steps) if options.max_steps else max(steps, 1)


def rate_share(step: int, steps: int, warmup_share: float) -> float:
    """The part of the learning rate for a step, counted from 1: it rises in a line, then falls along a cosine."""
    warm = max(1, math.ceil(steps * warmup_share))
    return step / warm if step <= warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm + 1)))


def make_schedule(
    options: argparse.Namespace, optimizer: torch.optim.Optimizer, steps: int
) -> torch.optim.lr_scheduler.LambdaLR:
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate_share(done + 1, steps, options.warmup_share))


def groups(
    loader: DataLoader, sampler: DistributedSampler, options: argparse.Namespace, steps: int, done: int = 0
) -> Iterator[list]:
    """The batches of each optimizer step, epoch after epoch, without those of the first `done` steps."""
    step = epoch = 0
    while step < steps:
        sampler.set_epoch(epoch)
        group: list[dict[str, torch.Tensor]] = []
        before = step
        for batch in loader:
            group.append(batch)
            if len(group) == options.gradient_accumulation:
                step += 1
                if step > done:
                    yield group
                group = []
            if step == steps:
                return
        if step == before:
            raise SystemExit("The data makes fewer batches than one optimizer step takes.")
        epoch += 1


class Progress:
    """Tells steps, loss and speed from rank 0, one JSON object a line."""

    def __init__(self, options: argparse.Namespace, *, rank: int, world: int, steps: int) -> None:
        self.options, self.rank, self.world, self.steps = options, rank, world, steps
        self.since = time.monotonic()
        self.tokens = 0

    def tell(self, step: int, loss: torch.Tensor, group: list[dict[str, torch.Tensor]], rate: float) -> None:
        self.tokens += sum(batch["input_ids"].numel() for batch in group) * self.world
        if self.rank or (step % self.options.log_every and step != self.steps):
            return
        seconds = time.monotonic() - self.since
        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
        line = {
            "step": step,
            "steps": self.steps,
            "loss": round(float(loss), 4),
            "learning_rate": rate,
            "tokens_per_second": round(self.tokens / max(seconds, 1e-9), 1),
            "peak_allocated_bytes": peak,
        }
        print(json.dumps(line), flush=True)
        self.since, self.tokens = time.monotonic(), 0


def ranks() -> tuple[int, int, int]:
    """Rank, local rank and number of processes, as every launcher sets them."""
    return (
        int(os.environ.get("RANK", "0")),
        int(os.environ.get("LOCAL_RANK", "0")),
        int(os.environ.get("WORLD_SIZE", "1")),
    )


def newest_checkpoint(output: str) -> Path | None:
    """The newest finished checkpoint below `output`."""
    found = [path for path in Path(output).glob("step-*") if (path / "finished").exists()]
    return max(found, key=lambda path: int(path.name.removeprefix("step-")), default=None)


def save_model(options: argparse.Namespace, model: nn.Module, state: dict[str, torch.Tensor] | None, tokenizer) -> None:
    """As Hugging Face reads it; the adapters alone for LoRA."""
    target = Path(options.output) / "model"
    model.save_pretrained(target, state_dict=state)
    tokenizer.save_pretrained(target)
