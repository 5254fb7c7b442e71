"""A pasted config.json: known architectures become the catalogue's shapes, and whatever else is pasted is an error with its field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogue.config_fields import ConfigError
from planner.catalogue.hf_config import shape_from_config
from planner.catalogue.hf_families import FAMILIES
from planner.catalogue.models import models
from planner.memory.cache import token_cache
from planner.parameters import count_parameters
from planner.runs import Layout
from planner.shapes import SlidingWindow
from planner.web.words import sentence

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
    "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
    "first_k_dense_replace": 1, "q_lora_rank": None, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840, "tie_word_embeddings": False,
}  # fmt: skip
PUBLISHED: dict[str, dict[str, Any]] = {
    "meta-llama/Meta-Llama-3.1-8B": LLAMA,
    "deepseek-ai/DeepSeek-V2-Lite": DEEPSEEK,
    "Qwen/Qwen2.5-7B": {
        "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 131072, "sliding_window": 131072,
        "use_sliding_window": False, "tie_word_embeddings": False,
    },
    "Qwen/Qwen3-30B-A3B": {
        "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
        "vocab_size": 151936, "max_position_embeddings": 40960, "sliding_window": None, "tie_word_embeddings": False,
    },
    "mistralai/Mixtral-8x7B-v0.1": {
        "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
        "max_position_embeddings": 32768, "sliding_window": None, "tie_word_embeddings": False,
    },
    "google/gemma-2-9b": {
        "model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8,
        "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096,
    },
    "google/gemma-3-1b-it": {
        "model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1,
        "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144, "max_position_embeddings": 32768, "sliding_window": 512,
        "sliding_window_pattern": 6,
    },
    "tiiuae/falcon-40b": {
        "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
        "new_decoder_architecture": True, "vocab_size": 65024, "alibi": False, "tie_word_embeddings": False,
    },
    "mosaicml/mpt-7b": {
        "model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4, "vocab_size": 50432,
        "max_seq_len": 2048, "no_bias": True, "attn_config": {"alibi": True},
    },
    "facebook/opt-1.3b": {
        "model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192,
        "vocab_size": 50272, "max_position_embeddings": 2048,
    },
    "bigscience/bloom-7b1": {"model_type": "bloom", "n_embd": 4096, "n_layer": 30, "num_attention_heads": 32, "vocab_size": 250880},
    "EleutherAI/gpt-neox-20b": {
        "model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576,
        "vocab_size": 50432, "max_position_embeddings": 2048, "tie_word_embeddings": False,
    },
    "EleutherAI/gpt-j-6b": {
        "model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": None, "vocab_size": 50400, "n_positions": 2048,
        "tie_word_embeddings": False,
    },
    "THUDM/chatglm3-6b": {
        "model_type": "chatglm", "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32, "multi_query_attention": True,
        "multi_query_group_num": 2, "kv_channels": 128, "ffn_hidden_size": 13696, "padded_vocab_size": 65024, "seq_length": 8192,
        "add_qkv_bias": True,
    },
    "internlm/internlm2-7b": {
        "model_type": "internlm2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 92544, "max_position_embeddings": 32768,
    },
    "baichuan-inc/Baichuan2-13B-Base": {
        "model_type": "baichuan", "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "intermediate_size": 13696,
        "vocab_size": 125696, "model_max_length": 4096,
    },
    "microsoft/Phi-3-mini-4k-instruct": {
        "model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "intermediate_size": 8192, "vocab_size": 32064, "max_position_embeddings": 4096, "sliding_window": 2047,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_the_catalogues_model(name: str) -> None:
    shape, known = shape_from_config(json.dumps(PUBLISHED[name])), models()[name].shape
    assert count_parameters(shape).total == pytest.approx(count_parameters(known).total, rel=2e-3)
    assert token_cache(shape, Layout(), "bf16") == token_cache(known, Layout(), "bf16")
    assert (shape.positions, shape.tied_embeddings, shape.sliding) == (
        known.positions,
        known.tied_embeddings,
        known.sliding,
    )


def test_the_language_model_of_a_vision_model_is_found() -> None:
    text = {key: value for key, value in PUBLISHED["google/gemma-3-1b-it"].items() if key != "model_type"}
    shape = shape_from_config(
        json.dumps({"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1}})
    )
    assert shape.hidden == 1152
    assert shape.sliding == SlidingWindow(512, 5, 1)


def test_architectures_name_a_model_without_a_type() -> None:
    config = {**LLAMA, "model_type": None, "architectures": ["LlamaForCausalLM"]}
    assert shape_from_config(json.dumps(config)).layers == 32


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"hidden_size": "4096"}, "shape.not_number", "hidden_size"),
    ({"hidden_size": True}, "shape.not_number", "hidden_size"),
    ({"hidden_size": -1}, "shape.out_of_range", "hidden_size"),
    ({"hidden_size": 0}, "shape.out_of_range", "hidden_size"),
    ({"hidden_size": 10**30}, "shape.out_of_range", "hidden_size"),
    ({"num_hidden_layers": 32.5}, "shape.not_whole", "num_hidden_layers"),
    ({"num_hidden_layers": float("nan")}, "shape.not_whole", "num_hidden_layers"),
    ({"vocab_size": float("inf")}, "shape.not_whole", "vocab_size"),
    ({"vocab_size": [1]}, "shape.not_number", "vocab_size"),
    ({"intermediate_size": None}, "shape.missing", "intermediate_size"),
    ({"num_key_value_heads": 5}, "shape.no_divisor", "num_key_value_heads"),
    ({"num_attention_heads": 7}, "shape.not_divisible", "hidden_size"),
    ({"tie_word_embeddings": "yes"}, "shape.not_flag", "tie_word_embeddings"),
    ({"attn_config": 3}, "shape.not_object", "attn_config"),
    ({"model_type": None}, "shape.missing", "model_type"),
]


@pytest.mark.parametrize(("change", "key", "field"), BAD)
def test_a_wrong_field_is_named(change: dict[str, Any], key: str, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shape_from_config(json.dumps({**LLAMA, **change}))
    assert (caught.value.reason.key, caught.value.reason.values["field"]) == (key, field)


def test_more_experts_for_a_token_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        shape_from_config(json.dumps({**DEEPSEEK, "num_experts_per_tok": 65}))
    assert caught.value.reason.values["field"] == "num_experts_per_tok"


def test_an_unknown_architecture_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        shape_from_config(json.dumps({**LLAMA, "model_type": "wav2vec2"}))
    assert caught.value.reason.values["value"] == "wav2vec2"
    assert "llama" in str(caught.value.reason.values["known"])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (json.dumps(LLAMA)[:100], "shape.not_json"),
        ("", "shape.not_json"),
        ("[]", "shape.no_object"),
        ("4096", "shape.no_object"),
        ("[" * 100_000, "shape.unreadable"),
        ('{"hidden_size": ' + "9" * 10_000 + "}", "shape.unreadable"),
        (" " * 1_000_001, "shape.too_long"),
    ],
)
def test_text_that_is_no_object_says_what_is_wrong(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shape_from_config(text)
    assert caught.value.reason.key == key


def answers(text: str) -> None:
    """A shape whose parameters can be counted, or an error with a sentence."""
    try:
        shape = shape_from_config(text)
    except ConfigError as error:
        sentence(error.reason)
        return
    assert count_parameters(shape).total > 0
    assert shape.heads % shape.kv_heads == 0
    assert token_cache(shape, Layout(), "bf16").bytes > 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.integers(1, 300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
NAMES = sorted(
    {name for config in PUBLISHED.values() for name in config} | {"architectures", "text_config", "multi_query"}
)


@given(
    base=st.sampled_from([*PUBLISHED.values(), {}]),
    kind=st.sampled_from([*FAMILIES, "other", None]),
    changes=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_no_object_makes_it_fail_otherwise(base: dict[str, Any], kind: str | None, changes: dict[str, Any]) -> None:
    answers(json.dumps({**base, "model_type": kind, **changes}))


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    answers(text)


@given(st.integers(0, len(json.dumps(DEEPSEEK))))
@settings(max_examples=100, deadline=None)
def test_a_truncated_config_is_an_error(length: int) -> None:
    answers(json.dumps(DEEPSEEK)[:length])


def test_a_mixture_without_its_experts_is_no_dense_model() -> None:
    config = {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
        "intermediate_size": 14336,
    }
    with pytest.raises(ConfigError) as caught:
        shape_from_config(json.dumps(config))
    assert caught.value.reason.values["field"] == "num_local_experts"


def test_a_byte_order_mark_is_no_fault() -> None:
    assert shape_from_config("\ufeff" + json.dumps(LLAMA)) == shape_from_config(json.dumps(LLAMA))
