"""A shape as one short line of name=value pairs, which fits into an address and can be typed by hand: shape_of(text_of(shape)) is the shape.

layers=32,hidden=4096,heads=32,kv_heads=8,intermediate=14336,vocab=128256
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast, get_args

from planner.catalogue.config_fields import ConfigError, Fields
from planner.catalogue.hf_config import (
    MOST_EXPERTS,
    MOST_HEAD_DIM,
    MOST_HEADS,
    MOST_HIDDEN,
    MOST_INTERMEDIATE,
    MOST_LAYERS,
    MOST_POSITIONS,
    MOST_VOCAB,
)
from planner.reasons import reason
from planner.shapes import Experts, LatentAttention, ModelShape, Positions, SlidingWindow

LONGEST_LINE = 2_000
MOST_PARAMETERS = 10**14
_NAME = re.compile(r"[\w.\- ]{1,80}")
_NUMBERS: Mapping[str, int] = {
    "layers": MOST_LAYERS,
    "hidden": MOST_HIDDEN,
    "heads": MOST_HEADS,
    "kv_heads": MOST_HEADS,
    "head_dim": MOST_HEAD_DIM,
    "intermediate": MOST_INTERMEDIATE,
    "vocab": MOST_VOCAB,
    "max_positions": MOST_POSITIONS,
    "prediction_layers": MOST_LAYERS,
    "vision_parameters": MOST_PARAMETERS,
    "published_parameters": MOST_PARAMETERS,
}
_FLAGS = {"tied_embeddings": False, "gated_mlp": True, "bias": False, "qkv_bias": False, "layer_norm": False}
# Parts with several numbers, joined by "/": their names in order, how many must be there, and their limits.
_GROUPS: Mapping[str, tuple[tuple[str, ...], int, tuple[int, ...]]] = {
    "experts": (
        ("count", "active", "intermediate", "shared_intermediate", "dense_layers"),
        3,
        (MOST_EXPERTS, MOST_EXPERTS, MOST_INTERMEDIATE, MOST_INTERMEDIATE, MOST_LAYERS),
    ),
    "latent": (
        ("query_rank", "kv_rank", "rope_dim", "nope_dim", "value_dim"),
        5,
        (MOST_HIDDEN, MOST_HIDDEN, MOST_HEAD_DIM, MOST_HEAD_DIM, MOST_HEAD_DIM),
    ),
    "sliding": (("window", "local", "full"), 1, (MOST_POSITIONS, MOST_LAYERS, MOST_LAYERS)),
}
KNOWN = ("name", *_NUMBERS, *_FLAGS, "positions", *_GROUPS)


def shape_of(line: str) -> ModelShape:
    """Raises ConfigError, which names the part that is wrong."""
    fields = Fields(dict(_parts(line)))
    heads, hidden = fields.whole("heads", most=MOST_HEADS), fields.whole("hidden", most=MOST_HIDDEN)
    kv_heads = fields.whole_or_none("kv_heads", most=MOST_HEADS) or heads
    if heads % kv_heads:
        fields.fail("shape.no_divisor", "kv_heads", of="heads", of_value=heads)
    numbers = {name: fields.whole_or_none(name, most=most, least=0) or 0 for name, most in _NUMBERS.items()}
    return ModelShape(
        name=fields.text("name") or "custom",
        layers=fields.whole("layers", most=MOST_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=fields.whole_or_none("head_dim", most=MOST_HEAD_DIM) or _head_dim(fields, hidden, heads),
        intermediate=fields.whole("intermediate", most=MOST_INTERMEDIATE),
        vocab=fields.whole("vocab", most=MOST_VOCAB),
        max_positions=numbers["max_positions"],
        prediction_layers=numbers["prediction_layers"],
        vision_parameters=numbers["vision_parameters"],
        published_parameters=numbers["published_parameters"] or None,
        positions=_positions(fields),
        experts=_experts(fields),
        latent=_latent(fields),
        sliding=_sliding(fields),
        source="shape",
        **{name: fields.flag(name, otherwise=usual) for name, usual in _FLAGS.items()},
    )


def text_of(shape: ModelShape) -> str:
    """The line of a shape, what is usual left out."""
    return ",".join(f"{name}={value}" for name, value in _said(shape))


def _said(shape: ModelShape) -> Iterator[tuple[str, object]]:
    yield "name", re.sub(r"[^\w.\- ]", "-", shape.name)[:80] or "custom"
    for name in _NUMBERS:
        if value := getattr(shape, name):
            yield name, value
    for name, usual in _FLAGS.items():
        if getattr(shape, name) is not usual:
            yield name, int(not usual)
    if shape.positions != "rope":
        yield "positions", shape.positions
    for name, (parts, _needed, _most) in _GROUPS.items():
        if group := getattr(shape, name):
            yield name, "/".join(str(getattr(group, part) or 0) for part in parts)


def _parts(line: str) -> Iterator[tuple[str, object]]:
    if len(line) > LONGEST_LINE:
        raise ConfigError(reason("shape.too_long", most=LONGEST_LINE))
    for part in filter(None, re.split(r"[,;\n]+", line)):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in KNOWN:
            raise ConfigError(reason("shape.unknown_part", value=part.strip()[:40], known=", ".join(KNOWN)))
        yield name, _value(name, value)


def _value(name: str, value: str) -> object:
    """A number where a number belongs; anything else stays a text, which Fields refuses by name."""
    if name in _FLAGS:
        return {"1": True, "0": False, "true": True, "false": False}.get(value.lower(), value)
    if name == "name" and not _NAME.fullmatch(value):
        raise ConfigError(reason("shape.bad_name", field=name))
    whole = re.fullmatch(r"-?[0-9]{1,19}", value)
    return int(value) if name in _NUMBERS and whole else value


def _head_dim(fields: Fields, hidden: int, heads: int) -> int:
    if hidden % heads:
        fields.fail("shape.not_divisible", "hidden", by="heads", by_value=heads)
    return hidden // heads


def _positions(fields: Fields) -> Positions:
    found = fields.text("positions") or "rope"
    if found not in get_args(Positions):
        raise ConfigError(
            reason("shape.not_one_of", field="positions", value=found[:40], known=", ".join(get_args(Positions)))
        )
    return cast("Positions", found)


def _group(fields: Fields, name: str) -> list[int] | None:
    """The numbers of a part, filled up with zeros."""
    if not fields.has(name):
        return None
    names, needed, limits = _GROUPS[name]
    pieces = fields.text(name).split("/")
    if not needed <= len(pieces) <= len(names) or not all(re.fullmatch(r"[0-9]{1,19}", piece) for piece in pieces):
        raise ConfigError(
            reason("shape.not_group", field=name, value=fields.text(name)[:40], form="/".join(names), least=needed)
        )
    inner = Fields({f"{name}.{part}": int(piece) for part, piece in zip(names, pieces, strict=False)})
    return [
        inner.whole_or_none(f"{name}.{part}", most=most, least=0) or 0 for part, most in zip(names, limits, strict=True)
    ]


def _experts(fields: Fields) -> Experts | None:
    found = _group(fields, "experts")
    if found is None:
        return None
    experts = Experts(*found)
    if not (0 < experts.active <= experts.count and experts.intermediate):
        raise ConfigError(reason("shape.bad_experts", field="experts", value=fields.text("experts")[:40]))
    return experts


def _latent(fields: Fields) -> LatentAttention | None:
    found = _group(fields, "latent")
    if found is None:
        return None
    query_rank, kv_rank, rope, nope, value = found
    if not (kv_rank and rope and nope and value):
        raise ConfigError(reason("shape.bad_latent", field="latent", value=fields.text("latent")[:40]))
    return LatentAttention(query_rank or None, kv_rank, rope, nope, value)


def _sliding(fields: Fields) -> SlidingWindow | None:
    found = _group(fields, "sliding")
    if found is None:
        return None
    window, local, full = found
    if not window:
        raise ConfigError(reason("shape.bad_sliding", field="sliding", value=fields.text("sliding")[:40]))
    return SlidingWindow(window, local or 1, full)
