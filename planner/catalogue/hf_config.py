"""A Hugging Face config.json as a shape. Whatever is pasted, the answer is a shape or a ConfigError that names the field."""

from __future__ import annotations

from dataclasses import replace

from planner.catalogue.config_fields import ConfigError, Fields, parse_object
from planner.catalogue.hf_families import FAMILIES, Family
from planner.reasons import reason
from planner.shapes import Experts, LatentAttention, ModelShape, Positions, SlidingWindow

# Beyond any model that was ever published, by an order of magnitude.
MOST_LAYERS, MOST_HIDDEN, MOST_HEADS, MOST_HEAD_DIM = 2_000, 200_000, 4_096, 4_096
MOST_INTERMEDIATE, MOST_VOCAB, MOST_EXPERTS, MOST_POSITIONS = 2_000_000, 10_000_000, 4_096, 100_000_000


def shape_from_config(text: str) -> ModelShape:
    """Raises ConfigError."""
    fields = parse_object(text)
    kind = fields.text("model_type") or _from_architectures(fields)
    family = FAMILIES.get(kind.lower())
    if family is None:
        raise ConfigError(reason("shape.unknown_architecture", value=kind[:60], known=", ".join(sorted(FAMILIES))))
    if family.inner and fields.has(family.inner):
        fields = fields.within(family.inner)
    name = fields.text("_name_or_path").rpartition("/")[2][:80] or kind[:80]
    return _checked(_shape(fields, family, name), fields)


def _from_architectures(fields: Fields) -> str:
    """("LlamaForCausalLM" -> "llama"); raises where neither model_type nor architectures says."""
    names = fields.values.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0].removesuffix("ForCausalLM").removesuffix("LMHeadModel").lower()
    raise ConfigError(reason("shape.missing", field="model_type"))


def _shape(fields: Fields, family: Family, name: str) -> ModelShape:
    hidden = fields.whole("hidden_size", "n_embd", "d_model", most=MOST_HIDDEN)
    layers = fields.whole("num_hidden_layers", "n_layer", "n_layers", "num_layers", most=MOST_LAYERS)
    heads = fields.whole("num_attention_heads", "n_head", "n_heads", "num_heads", most=MOST_HEADS)
    positions = _positions(fields, family, hidden)
    return ModelShape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(fields, heads),
        head_dim=_head_dim(fields, family, hidden, heads),
        intermediate=_intermediate(fields, family, hidden),
        vocab=fields.whole("padded_vocab_size", "vocab_size", most=MOST_VOCAB),
        tied_embeddings=fields.flag("tie_word_embeddings", otherwise=family.tied),
        max_positions=_max_positions(fields, family, positions),
        gated_mlp=family.gated,
        bias=family.bias and not fields.flag("no_bias", otherwise=False),
        qkv_bias=_qkv_bias(fields, family),
        layer_norm=family.layer_norm,
        positions=positions,
        experts=_experts(fields, family, layers),
        latent=_latent(fields) if family.latent else None,
        sliding=_sliding(fields, family, layers),
        source="config.json",
    )


def _kv_heads(fields: Fields, heads: int) -> int:
    if fields.flag("new_decoder_architecture", otherwise=False):
        return fields.whole("num_kv_heads", "n_head_kv", most=MOST_HEADS)
    if fields.has("multi_query_attention"):
        many = fields.flag("multi_query_attention", otherwise=False)
        return fields.whole("multi_query_group_num", most=MOST_HEADS) if many else heads
    if fields.flag("multi_query", otherwise=False):
        return 1
    inner = fields.within("attn_config").whole_or_none("kv_n_heads", most=MOST_HEADS)
    return fields.whole_or_none("num_key_value_heads", "num_kv_heads", most=MOST_HEADS) or inner or heads


def _head_dim(fields: Fields, family: Family, hidden: int, heads: int) -> int:
    if family.latent:
        return fields.whole("qk_nope_head_dim", most=MOST_HEAD_DIM) + fields.whole(
            "qk_rope_head_dim", most=MOST_HEAD_DIM
        )
    stated = fields.whole_or_none("head_dim", "kv_channels", most=MOST_HEAD_DIM)
    if stated:
        return stated
    if hidden % heads:
        raise ConfigError(
            reason(
                "shape.not_divisible", field="hidden_size", value=str(hidden), by="num_attention_heads", by_value=heads
            )
        )
    return hidden // heads


def _intermediate(fields: Fields, family: Family, hidden: int) -> int:
    stated = fields.whole_or_none("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", most=MOST_INTERMEDIATE)
    if stated:
        return stated
    ratio = fields.whole_or_none("expansion_ratio", most=100) or family.mlp_ratio
    if ratio is None:
        raise ConfigError(reason("shape.missing", field="intermediate_size"))
    return ratio * hidden


def _positions(fields: Fields, family: Family, hidden: int) -> Positions:
    if fields.flag("alibi", otherwise=False) or fields.within("attn_config").flag("alibi", otherwise=False):
        return "alibi"
    # Baichuan's 13B models use ALiBi, its 7B models rotate; only the size tells.
    if fields.text("model_type") == "baichuan" and hidden >= 5120:
        return "alibi"
    return family.positions


def _max_positions(fields: Fields, family: Family, positions: Positions) -> int:
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "n_ctx")
    stated = fields.whole_or_none(*names, most=MOST_POSITIONS)
    if stated is None and positions == "learned":
        raise ConfigError(reason("shape.missing", field=names[0]))
    return (stated or 0) + (family.extra_positions if stated else 0)


def _qkv_bias(fields: Fields, family: Family) -> bool:
    for name in ("attention_bias", "add_qkv_bias", "qkv_bias", "use_qkv_bias"):
        if fields.has(name):
            return fields.flag(name, otherwise=family.qkv_bias)
    return family.qkv_bias


def _experts(fields: Fields, family: Family, layers: int) -> Experts | None:
    count = fields.whole_or_none("num_local_experts", "num_experts", "n_routed_experts", most=MOST_EXPERTS, least=0)
    if count is None and family.experts in {"mixtral", "qwen"}:
        raise ConfigError(
            reason("shape.missing", field="num_local_experts" if family.experts == "mixtral" else "num_experts")
        )
    if family.experts is None or not count:
        return None
    active = fields.whole("num_experts_per_tok", "experts_per_token", most=MOST_EXPERTS)
    if active > count:
        fields.fail("shape.out_of_range", "num_experts_per_tok", least=1, most=count)
    width = fields.whole("moe_intermediate_size", "intermediate_size", most=MOST_INTERMEDIATE)
    shared = fields.whole_or_none("shared_expert_intermediate_size", most=MOST_INTERMEDIATE, least=0) or 0
    if family.experts == "deepseek":
        shared = width * (fields.whole_or_none("n_shared_experts", most=MOST_EXPERTS, least=0) or 0)
    dense = fields.whole_or_none("first_k_dense_replace", most=layers, least=0) or 0
    return Experts(count=count, active=active, intermediate=width, shared_intermediate=shared, dense_layers=dense)


def _latent(fields: Fields) -> LatentAttention:
    return LatentAttention(
        query_rank=fields.whole_or_none("q_lora_rank", most=MOST_HIDDEN),
        kv_rank=fields.whole("kv_lora_rank", most=MOST_HIDDEN),
        rope_dim=fields.whole("qk_rope_head_dim", most=MOST_HEAD_DIM),
        nope_dim=fields.whole("qk_nope_head_dim", most=MOST_HEAD_DIM),
        value_dim=fields.whole("v_head_dim", most=MOST_HEAD_DIM),
    )


def _sliding(fields: Fields, family: Family, layers: int) -> SlidingWindow | None:
    window = fields.whole_or_none("sliding_window", most=MOST_POSITIONS)
    if family.sliding is None or window is None:
        return None
    if family.sliding == "flagged" and not fields.flag("use_sliding_window", otherwise=False):
        return None
    if family.sliding == "alternate":
        return SlidingWindow(window, local=1, full=1)
    if family.sliding == "pattern":
        every = fields.whole_or_none("sliding_window_pattern", most=layers, least=2) or min(6, layers)
        return SlidingWindow(window, local=max(1, every - 1), full=1)
    return SlidingWindow(window)


def _checked(shape: ModelShape, fields: Fields) -> ModelShape:
    """Numbers that are fine alone and cannot be together."""
    if shape.heads % shape.kv_heads:
        name = next(
            (name for name in ("num_key_value_heads", "num_kv_heads", "multi_query_group_num") if fields.has(name)),
            "num_key_value_heads",
        )
        raise ConfigError(
            reason(
                "shape.no_divisor",
                field=name,
                value=str(shape.kv_heads),
                of="num_attention_heads",
                of_value=shape.heads,
            )
        )
    if shape.latent:
        return replace(shape, kv_heads=shape.heads)
    return shape
