"""Makes the weights of a model smaller, by one of six recipes. What comes out is read by vLLM and by transformers."""

from __future__ import annotations

import argparse

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

RECIPES = ("int8", "gptq-int8", "gptq-int4", "awq-int4", "fp8", "nf4")
SAMPLES = 256
# The head decides over single tokens: in few bits it costs more than it saves.
KEPT = ["lm_head"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--recipe", required=True, choices=RECIPES)
    parser.add_argument(
        "--calibration", help="a .jsonl file with text like that the model will serve; int8, GPTQ and AWQ need it"
    )
    parser.add_argument("--output", required=True)
    parser.add_argument("--length", type=int, default=2048)
    options = parser.parse_args()
    if options.recipe == "nf4":
        four_bits(options)
        return
    if options.recipe != "fp8" and not options.calibration:
        parser.error(f"--recipe {options.recipe} needs --calibration")
    compress(options)


def four_bits(options: argparse.Namespace) -> None:
    """NF4 needs no calibration: bitsandbytes rounds blocks of weights while it reads them."""
    settings = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    model = AutoModelForCausalLM.from_pretrained(options.model, quantization_config=settings, device_map="auto")
    save(options, model)


def compress(options: argparse.Namespace) -> None:
    from llmcompressor import oneshot

    model = AutoModelForCausalLM.from_pretrained(options.model, dtype="auto")
    oneshot(model=model, recipe=recipe(options.recipe), **calibration(options))
    save(options, model, save_compressed=True)


def recipe(name: str) -> list:
    from llmcompressor.modifiers.gptq import GPTQModifier
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from llmcompressor.modifiers.transform.awq import AWQModifier
    from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier

    if name == "fp8":
        return [QuantizationModifier(targets="Linear", scheme="FP8_DYNAMIC", ignore=KEPT)]
    if name == "int8":
        # Outliers of activations are moved into the weights first: both are INT8 then.
        return [SmoothQuantModifier(smoothing_strength=0.8), GPTQModifier(targets="Linear", scheme="W8A8", ignore=KEPT)]
    if name == "gptq-int8":
        return [GPTQModifier(targets="Linear", scheme="W8A16", ignore=KEPT)]
    if name == "gptq-int4":
        return [GPTQModifier(targets="Linear", scheme="W4A16", ignore=KEPT)]
    return [AWQModifier(duo_scaling="both"), QuantizationModifier(targets=["Linear"], scheme="W4A16_ASYM", ignore=KEPT)]


def calibration(options: argparse.Namespace) -> dict:
    if not options.calibration:
        return {}
    from datasets import load_dataset

    tokenizer = AutoTokenizer.from_pretrained(options.model)
    rows = load_dataset("json", data_files=options.calibration, split="train").shuffle(seed=1)
    rows = rows.select(range(min(SAMPLES, len(rows))))
    tokens = rows.map(
        lambda row: tokenizer(row["text"], truncation=True, max_length=options.length),
        remove_columns=rows.column_names,
    )
    return {"dataset": tokens, "max_seq_length": options.length, "num_calibration_samples": len(tokens)}


def save(options: argparse.Namespace, model, **settings: bool) -> None:
    model.save_pretrained(options.output, **settings)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.output)


if __name__ == "__main__":
    main()
