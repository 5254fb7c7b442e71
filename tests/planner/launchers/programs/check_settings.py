"""Gives settings to the tools that read them: `python check_settings.py cases.json`, with the launchers' Python, in the scripts' directory.

A case is {"script": …, "words": […], "deepspeed": …, "fsdp": …}; prints what the tools made of each.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))


def main() -> None:
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps([checked(case) for case in cases]))


def checked(case: dict) -> dict:
    found: dict[str, object] = {}
    sys.argv = [case["script"], *case["words"]]
    if case["script"] == "train_trl.py":
        found |= trainer(case)
    else:
        found["options"] = vars(importlib.import_module(case["script"].removesuffix(".py")).arguments())
    if "deepspeed" in case:
        found["deepspeed"] = deepspeed(case["deepspeed"])
    return found


def trainer(case: dict) -> dict[str, object]:
    """Arguments of SFTConfig as it understands them, and the adapters that PEFT makes."""
    if "fsdp" in case:
        Path("fsdp.json").write_text(case["fsdp"], encoding="utf-8")
    from transformers import HfArgumentParser
    from trl import SFTConfig

    script = importlib.import_module("train_trl")
    subject, training = HfArgumentParser((script.Subject, SFTConfig)).parse_args_into_dataclasses(
        [*sys.argv[1:], "--use_cpu"]
    )
    plugin = training.fsdp_plugin_args if training.fsdp else None
    adapters = script.adapters(subject)
    return {
        "bf16": training.bf16,
        "length": training.max_length,
        "packing": training.packing,
        "optimizer": training.optim,
        "rate": training.learning_rate,
        "fsdp": {name: str(value) for name, value in plugin.items()} if plugin else None,
        "lora": sorted(adapters.target_modules) if adapters else None,
    }


def deepspeed(text: str) -> dict[str, object]:
    """DeepSpeed refuses unknown keys of its zero_optimization, and batch sizes that contradict each other."""
    from deepspeed.runtime.config import DeepSpeedConfig

    config = DeepSpeedConfig(json.loads(text))
    zero = config.zero_config
    return {
        "stage": int(zero.stage),
        "offload": str(zero.offload_optimizer.device) if zero.offload_optimizer else None,
        "offload_param": str(zero.offload_param.device) if zero.offload_param else None,
        "bf16": config.bfloat16_config.enabled,
        "fp16": config.float16_config.enabled,
        "micro_batch": config.train_micro_batch_size_per_gpu,
        "accumulation": config.gradient_accumulation_steps,
    }


if __name__ == "__main__":
    main()
