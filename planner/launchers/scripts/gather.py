"""Writes a checkpoint of DeepSpeed, FSDP2 or DDP as a model that Hugging Face reads. Needs memory of the machine for all weights in fp32."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import finetune
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--model", required=True, help="the model that training started from: its shape and its tokenizer"
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--deepspeed", help="output directory of train_deepspeed.py")
    source.add_argument("--sharded", help="output directory of train_fsdp2.py or train_ddp.py")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    state = from_deepspeed(options.deepspeed) if options.deepspeed else from_checkpoint(options.sharded)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16)
    missing, unknown = model.load_state_dict(state, strict=False)
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    if unknown or set(missing) - tied:
        raise SystemExit(
            f"The checkpoint is not of this model: missing {sorted(missing)[:3]}, unknown {sorted(unknown)[:3]}"
        )
    model.save_pretrained(options.output)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.output)


def from_deepspeed(output: str) -> dict[str, torch.Tensor]:
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    return get_fp32_state_dict_from_zero_checkpoint(output)


def from_checkpoint(output: str) -> dict[str, torch.Tensor]:
    """The newest finished one."""
    folder = finetune.newest_checkpoint(output)
    if folder is None:
        raise SystemExit(f"{output} has no finished checkpoint")
    whole = folder / "state.pt"
    state = torch.load(whole, map_location="cpu", weights_only=True) if whole.exists() else joined(folder)
    return {name.removeprefix("model."): part for name, part in state["model"].items()}


def joined(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    """The parts that the ranks wrote, as one."""
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary) / "joined.pt"
        dcp_to_torch_save(folder, target)
        return torch.load(target, map_location="cpu", weights_only=False)


if __name__ == "__main__":
    main()
