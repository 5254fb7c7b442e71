"""Buffers that a quantized base needs to be computed with."""

from __future__ import annotations

from collections.abc import Iterator

from planner.estimates import Term
from planner.memory.elements import BITSANDBYTES, GIB
from planner.runs import TrainingRun

# Layers of AutoGPTQ unpack their weights to integers and 16-bit numbers before each product.
GPTQ_UNPACKED_BYTES = 1.2 * GIB


def unpacking_terms(run: TrainingRun) -> Iterator[Term]:
    if run.weight_format in BITSANDBYTES:
        shape = run.shape
        copies = 2 if run.engine == "litgpt" else 1
        widest = max(shape.vocab if run.engine == "litgpt" else 0, shape.intermediate) * shape.hidden
        formula = f"{copies} x 2 B x largest matrix {widest}"
        yield Term.within(
            "dequantized",
            copies * 2.0 * widest,
            0.3,
            formula=formula,
            source="bitsandbytes dequantizes a whole matrix for its product",
        )
    elif run.weight_format.startswith("gptq"):
        source = "fitted on Q-LoRA over GPTQ bases of two sizes"
        yield Term.within("dequantized", GPTQ_UNPACKED_BYTES, 0.4, formula="fixed", source=source)
