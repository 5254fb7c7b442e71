"""Fine-tunes with PaddlePaddle's fleet: data, tensor and sharding degrees. `python -m paddle.distributed.launch` starts it."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import paddle
from paddle.distributed import fleet
from paddlenlp.peft import LoRAConfig, LoRAModel
from paddlenlp.transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    options = arguments()
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {
        "dp_degree": options.dp_degree,
        "mp_degree": options.mp_degree,
        "pp_degree": 1,
        "sharding_degree": options.sharding_degree,
    }
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(1)
    train(options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--dataset", required=True, help="a .jsonl file with text")
    parser.add_argument("--output", required=True)
    parser.add_argument("--sequence-length", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--gradient-accumulation", type=int, default=1)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--offload", action="store_true")
    parser.add_argument("--dp_degree", type=int, default=1)
    parser.add_argument("--mp_degree", type=int, default=1)
    parser.add_argument("--sharding_degree", type=int, default=1)
    parser.add_argument("--sharding_stage", type=int, default=0, choices=[0, 1, 2, 3])
    parser.add_argument("--lora-rank", type=int, default=0)
    parser.add_argument("--lora-targets", default="q_proj,v_proj")
    return parser.parse_args()


def train(options: argparse.Namespace) -> None:
    groups = fleet.get_hybrid_communicate_group()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    rows = sequences(options, tokenizer, *data_rank(groups))
    model = load_model(options, groups)
    batches = len(rows) // options.micro_batch
    steps = max(1, math.ceil(batches // options.gradient_accumulation * options.epochs))
    warm = max(1, math.ceil(0.03 * steps))
    cosine = paddle.optimizer.lr.CosineAnnealingDecay(options.learning_rate, T_max=steps)
    schedule = paddle.optimizer.lr.LinearWarmup(cosine, warm, 0.0, options.learning_rate)
    optimizer = paddle.optimizer.AdamW(
        learning_rate=schedule,
        parameters=[weight for weight in model.parameters() if not weight.stop_gradient],
        grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0),
        multi_precision=True,
    )
    wrapped, optimizer = distribute(options, model, optimizer, groups)
    for step in range(1, steps + 1):
        loss = one_step(options, wrapped, optimizer, rows, step)
        schedule.step()
        if paddle.distributed.get_rank() == 0:
            print(json.dumps({"step": step, "steps": steps, "loss": loss}), flush=True)
    target = str(Path(options.output) / "model")
    model.save_pretrained(target, merge_tensor_parallel=options.mp_degree > 1)
    tokenizer.save_pretrained(target)


def data_rank(groups) -> tuple[int, int]:
    """Which part of the data this process reads, of how many: sharding ranks read other parts, as data-parallel ones do."""
    sharding = groups.get_sharding_parallel_world_size()
    rank = groups.get_data_parallel_rank() * sharding + groups.get_sharding_parallel_rank()
    return rank, groups.get_data_parallel_world_size() * sharding


def load_model(options: argparse.Namespace, groups):
    model = AutoModelForCausalLM.from_pretrained(
        options.model,
        dtype=options.dtype,
        tensor_parallel_degree=options.mp_degree,
        tensor_parallel_rank=groups.get_model_parallel_rank(),
        use_flash_attention=True,
    )
    if options.checkpointing:
        model.recompute_enable()
    if not options.lora_rank:
        return model
    adapters = LoRAConfig(
        target_modules=[f".*{name}.*" for name in options.lora_targets.split(",")],
        r=options.lora_rank,
        lora_alpha=2 * options.lora_rank,
        dtype=options.dtype,
        tensor_parallel_degree=options.mp_degree,
    )
    adapted = LoRAModel(model, adapters)
    adapted.mark_only_lora_as_trainable()
    return adapted


def distribute(options: argparse.Namespace, model, optimizer, groups):
    """Stages 2 and 3 split gradients and weights in groups of their own; the rest is fleet's."""
    if options.sharding_stage < 2:
        return fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
    from paddle.distributed.sharding import group_sharded_parallel

    level = "os_g" if options.sharding_stage == 2 else "p_g_os"
    group = groups.get_sharding_parallel_group()
    wrapped, optimizer, _scaler = group_sharded_parallel(model, optimizer, level, group=group, offload=options.offload)
    return wrapped, optimizer


def sequences(options: argparse.Namespace, tokenizer, rank: int, world: int) -> np.ndarray:
    """Rows of exactly `sequence_length` tokens, of which this rank takes every `world`-th."""
    joined: list[int] = []
    for line in Path(options.dataset).read_text(encoding="utf-8").splitlines():
        if line.strip():
            joined += [*tokenizer(json.loads(line)["text"])["input_ids"], tokenizer.eos_token_id]
    length = options.sequence_length
    rows = np.asarray(joined[: len(joined) // length * length], dtype="int64").reshape(-1, length)
    mine = rows[rank : len(rows) // world * world : world]
    if len(mine) < options.micro_batch * options.gradient_accumulation:
        raise SystemExit("The data makes fewer batches than one optimizer step takes.")
    return mine


def one_step(options: argparse.Namespace, model, optimizer, rows: np.ndarray, step: int) -> float:
    total = 0.0
    for part in range(options.gradient_accumulation):
        start = ((step - 1) * options.gradient_accumulation + part) * options.micro_batch
        ids = paddle.to_tensor(np.take(rows, range(start, start + options.micro_batch), axis=0, mode="wrap"))
        with paddle.amp.auto_cast(enable=options.dtype != "float32", level="O2", dtype=options.dtype):
            output = model(input_ids=ids, labels=ids)
            loss = (output[0] if isinstance(output, tuple) else output) / options.gradient_accumulation
        loss.backward()
        total += float(loss)
    optimizer.step()
    optimizer.clear_grad()
    return total


if __name__ == "__main__":
    main()
