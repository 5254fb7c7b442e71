"""Fine-tunes with TRL's SFTTrainer and PEFT: Hugging Face's own loop, which torchrun or accelerate start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import BitsAndBytesConfig, HfArgumentParser
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer


@dataclass
class Subject:
    """What is trained, on what, and how."""

    model: str = field(metadata={"help": "id on the Hugging Face hub, or a directory"})
    dataset: str = field(
        metadata={"help": "a .jsonl file with text, messages, or prompt and completion; or an id on the hub"}
    )
    method: str = field(default="full", metadata={"choices": ["full", "lora", "qlora"]})
    dtype: str = field(default="bfloat16", metadata={"choices": ["bfloat16", "float16", "float32"]})
    attention: str = field(default="sdpa", metadata={"choices": ["sdpa", "eager"]})
    lora_rank: int = 16
    lora_targets: str = "q_proj,v_proj"
    lora_whole: str = ""


def main() -> None:
    subject, training = HfArgumentParser((Subject, SFTConfig)).parse_args_into_dataclasses()
    source = Path(subject.dataset)
    rows = (
        load_dataset("json", data_files=str(source), split="train")
        if source.is_file()
        else load_dataset(subject.dataset, split="train")
    )
    training.model_init_kwargs = {
        "dtype": subject.dtype,
        "attn_implementation": subject.attention,
        "quantization_config": four_bits(subject) if subject.method == "qlora" else None,
    }
    trainer = SFTTrainer(model=subject.model, args=training, train_dataset=rows, peft_config=adapters(subject))
    last = get_last_checkpoint(training.output_dir) if Path(training.output_dir).is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    if trainer.is_fsdp_enabled:
        # Checkpoints are in parts; what is written at the end is whole, or nothing would be written at all.
        trainer.accelerator.state.fsdp_plugin.set_state_dict_type("FULL_STATE_DICT")
    trainer.save_model(str(Path(training.output_dir) / "model"))


def four_bits(subject: Subject) -> BitsAndBytesConfig:
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, subject.dtype),
    )


def adapters(subject: Subject) -> LoraConfig | None:
    if subject.method == "full":
        return None
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=subject.lora_rank,
        lora_alpha=2 * subject.lora_rank,
        target_modules=subject.lora_targets.split(","),
        modules_to_save=subject.lora_whole.split(",") if subject.lora_whole else None,
    )


if __name__ == "__main__":
    main()
