"""Compares a model before and after it was made smaller, on texts of the field that it serves; fails if it lost too much.

Perplexity says how surprised a model is by a text. It is a first test: follow it with the questions that users ask.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument(
        "--texts", required=True, help="a .jsonl file with text; none of it was trained or calibrated on"
    )
    parser.add_argument("--most-loss", type=float, default=0.02, help="share by which perplexity may rise")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a text that are read")
    options = parser.parse_args()
    texts = [
        json.loads(line)["text"]
        for line in Path(options.texts).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    before, after = (perplexity(name, texts, options.length) for name in (options.before, options.after))
    rise = after / before - 1
    print(json.dumps({"before": round(before, 4), "after": round(after, 4), "rise": round(rise, 4)}))
    if rise > options.most_loss:
        raise SystemExit(f"Perplexity rose by {rise:.1%}, more than {options.most_loss:.1%}: keep the larger weights.")


def perplexity(name: str, texts: list[str], length: int) -> float:
    """Over all tokens of all texts, each text by itself."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, dtype="auto", device_map=device).eval()
    loss = tokens = 0.0
    with torch.inference_mode():
        for text in texts:
            ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=length)["input_ids"].to(device)
            predicted = ids.shape[1] - 1
            if predicted > 0:
                loss += model(input_ids=ids, labels=ids).loss.item() * predicted
                tokens += predicted
    if not tokens:
        raise SystemExit("The texts are too short to judge by.")
    return math.exp(loss / tokens)


if __name__ == "__main__":
    main()
