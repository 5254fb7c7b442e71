"""Adds LoRA adapters to the weights of their base model and writes a model that needs no adapters."""

from __future__ import annotations

import argparse

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="the base model, in 16 or 32 bits")
    parser.add_argument("--adapters", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    options = parser.parse_args()
    base = AutoModelForCausalLM.from_pretrained(
        options.model, dtype=getattr(torch, options.dtype), low_cpu_mem_usage=True
    )
    merged = PeftModel.from_pretrained(base, options.adapters).merge_and_unload(safe_merge=True)
    merged.save_pretrained(options.output)
    AutoTokenizer.from_pretrained(options.adapters).save_pretrained(options.output)


if __name__ == "__main__":
    main()
