"""Architectures of Hugging Face configurations: what a config.json of each does not say itself.

From the configuration and modeling classes of transformers, and of the published remote code (internlm2, baichuan, chatglm).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planner.shapes import Positions

ExpertsStyle = Literal["mixtral", "qwen", "deepseek"]
SlidingStyle = Literal["all", "flagged", "alternate", "pattern"]


@dataclass(frozen=True, slots=True)
class Family:
    """What holds where the file does not say."""

    gated: bool = True
    layer_norm: bool = False
    bias: bool = False
    qkv_bias: bool = False
    positions: Positions = "rope"
    tied: bool = False
    # Width of the MLP in hidden sizes, where the file has no field for it.
    mlp_ratio: int | None = None
    experts: ExpertsStyle | None = None
    latent: bool = False
    sliding: SlidingStyle | None = None
    # Learned positions that the table has beyond those of the file.
    extra_positions: int = 0
    # The field that holds the language model of a vision model.
    inner: str = ""


_LLAMA = Family()
_QWEN2 = Family(qkv_bias=True, sliding="flagged")
_GEMMA = Family(tied=True)
_GPT = Family(gated=False, layer_norm=True, bias=True, mlp_ratio=4)

FAMILIES: Mapping[str, Family] = {
    "llama": _LLAMA,
    "mllama": replace(_LLAMA, inner="text_config"),
    "mistral": Family(sliding="all"),
    "mistral3": replace(_LLAMA, inner="text_config"),
    "mixtral": Family(experts="mixtral", sliding="all"),
    "qwen": Family(qkv_bias=True),
    "qwen2": _QWEN2,
    "qwen2_moe": replace(_QWEN2, experts="qwen"),
    "qwen2_vl": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen3": Family(sliding="flagged"),
    "qwen3_moe": Family(experts="qwen", sliding="flagged"),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, sliding="alternate"),
    "gemma3_text": replace(_GEMMA, sliding="pattern"),
    "gemma3": replace(_GEMMA, sliding="pattern", inner="text_config"),
    "phi": replace(_GPT, positions="rope", tied=False),
    "phi3": Family(sliding="all"),
    "phimoe": Family(experts="mixtral", layer_norm=True, sliding="all"),
    "deepseek": Family(experts="deepseek"),
    "deepseek_v2": Family(experts="deepseek", latent=True),
    "deepseek_v3": Family(experts="deepseek", latent=True),
    "falcon": Family(gated=False, layer_norm=True, tied=True, mlp_ratio=4),
    "mpt": Family(gated=False, layer_norm=True, tied=True, positions="alibi", mlp_ratio=4),
    "opt": Family(gated=False, layer_norm=True, bias=True, tied=True, positions="learned", extra_positions=2),
    "bloom": replace(_GPT, tied=True, positions="alibi"),
    "gpt2": replace(_GPT, tied=True, positions="learned"),
    "gpt_bigcode": replace(_GPT, tied=True, positions="learned"),
    "gpt_neo": replace(_GPT, tied=True, positions="learned"),
    "gpt_neox": _GPT,
    "gptj": Family(gated=False, layer_norm=True, mlp_ratio=4),
    "internlm": Family(qkv_bias=True),
    "internlm2": _LLAMA,
    "internlm3": _LLAMA,
    "baichuan": _LLAMA,
    "chatglm": Family(qkv_bias=True),
    "glm": Family(qkv_bias=True),
    "glm4": Family(qkv_bias=True),
    "glm4_moe": Family(qkv_bias=True, experts="deepseek"),
    "yi": _LLAMA,
    "stablelm": Family(layer_norm=True),
    "starcoder2": Family(gated=False, layer_norm=True, bias=True, tied=True),
    "cohere": Family(layer_norm=True, tied=True),
    "cohere2": Family(layer_norm=True, tied=True, sliding="pattern"),
    "olmo": Family(layer_norm=True),
    "olmo2": _LLAMA,
    "granite": Family(tied=True),
    "smollm3": Family(tied=True),
    "gpt_oss": Family(experts="mixtral", qkv_bias=True, sliding="alternate"),
}
