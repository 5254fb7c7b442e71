"""Writes a tiny model with random weights, its tokenizer and some data: `python tiny.py DIRECTORY`, with the launchers' Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast


def main() -> None:
    target = Path(sys.argv[1])
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(target / "model")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(target / "model")
    texts = [f"sample {number}: the quick brown fox jumps over the lazy dog {number * 7}" for number in range(64)]
    write(target / "data.jsonl", [{"text": text} for text in texts])
    write(target / "pairs.jsonl", [{"prompt": text[:12], "completion": text[12:]} for text in texts])
    write(
        target / "chats.jsonl",
        [{"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "yes"}]} for text in texts],
    )


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes, and a beginning and an end."""
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    return fast


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
