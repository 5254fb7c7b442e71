"""The cache of keys and values: what a token takes, and how many tokens a pool holds."""

from __future__ import annotations

from dataclasses import dataclass

from planner.memory.elements import DTYPE_BYTES
from planner.runs import Layout, ServingRun
from planner.shapes import ModelShape

# Tokens of a block in vLLM and TensorRT-LLM.
BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class TokenCache:
    """Bytes a token takes on one GPU: in layers that keep every token, and in those that keep a window of `window` tokens."""

    everywhere: float
    windowed: float
    window: int

    @property
    def bytes(self) -> float:
        return self.everywhere + self.windowed

    def sequence(self, tokens: int) -> float:
        """Of one sequence of `tokens`, where the engine drops what has left the window."""
        return self.everywhere * tokens + self.windowed * min(tokens, self.window or tokens)


def token_cache(shape: ModelShape, layout: Layout, dtype: str) -> TokenCache:
    """2 x L x max(k / t, 1) x d x bytes; latent attention keeps kv_rank + rope, replicated over the tensor group (vLLM, arXiv 2405.04434)."""
    layer = _layer_elements(shape, layout) * DTYPE_BYTES[dtype]
    layers = shape.layers / layout.pipeline
    if not shape.sliding:
        return TokenCache(layer * layers, 0.0, 0)
    local = shape.sliding.local / (shape.sliding.local + shape.sliding.full)
    return TokenCache(layer * layers * (1 - local), layer * layers * local, shape.sliding.window)


def _layer_elements(shape: ModelShape, layout: Layout) -> float:
    if shape.latent:
        return shape.latent.kv_rank + shape.latent.rope_dim
    return 2 * max(shape.kv_heads / layout.tensor, 1.0) * shape.head_dim


def tokens_in_pool(run: ServingRun, pool_bytes: float) -> int:
    """Whole blocks only. Engines that count a window like a full layer are taken: they divide by the bytes of all layers."""
    block = BLOCK_TOKENS * token_cache(run.shape, run.layout, run.kv_dtype).bytes
    return BLOCK_TOKENS * max(0, int(pool_bytes // block))


def sequence_bytes(run: ServingRun, tokens: int) -> float:
    """What one request of `tokens` needs on one GPU, in whole blocks."""
    blocks = -(-tokens // BLOCK_TOKENS)
    return token_cache(run.shape, run.layout, run.kv_dtype).sequence(blocks * BLOCK_TOKENS)
