"""Training memory, term by term: known closed forms, and each switch of a run as a change of its own terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalogue.gpus import gpus
from planner.catalogue.models import models
from planner.estimates import MemoryEstimate
from planner.memory.adapters import adapter_parameters
from planner.memory.training import training_memory
from planner.parameters import count_parameters
from planner.runs import Layout, Lora, TrainingRun
from planner.shapes import ModelShape

GIB = 2**30
LLAMA_7B = models()["meta-llama/Llama-2-7b-hf"].shape
LLAMA_3B = models()["meta-llama/Llama-3.2-3B"].shape
GPT = ModelShape(
    name="gpt", layers=12, hidden=512, heads=8, kv_heads=8, head_dim=64, intermediate=2048, vocab=50304, tied_embeddings=True,
    max_positions=1024, gated_mlp=False, bias=True, layer_norm=True, positions="learned",
)  # fmt: skip
MEGATRON = TrainingRun(
    shape=GPT, method="full", engine="megatron", layout=Layout(), sequence_length=1024, micro_batch=4, attention="flash"
)
RECIPE = TrainingRun(
    shape=LLAMA_3B, method="full", engine="torchtune", layout=Layout(), sequence_length=4096, micro_batch=2,
    master_weights=False, attention="sdpa",
)  # fmt: skip


def terms(run: TrainingRun, *, stage: int | None = None) -> dict[str, float]:
    return {term.key: term.expected for term in training_memory(run, stage=stage).terms}


def activations(run: TrainingRun) -> float:
    return sum(amount for key, amount in terms(run).items() if key.startswith("activations"))


def test_a_gpt_layer_keeps_34_bytes_a_token_and_element_and_5_a_score() -> None:
    """Korthikanti et al., equation 1; attention without scores keeps its log-sum-exp instead."""
    tokens, log_sum_exp = 4 * 1024, 4 * 8
    assert activations(MEGATRON) == 12 * tokens * (34 * 512 + log_sum_exp)
    eager = activations(replace(MEGATRON, attention="eager"))
    assert eager == 12 * tokens * (34 * 512 + 5 * 8 * 1024)


def test_tensor_parallelism_divides_24_of_34_and_sequence_parallelism_the_rest() -> None:
    tokens, split = 4 * 1024, Layout(tensor=2)
    without_scores = activations(replace(MEGATRON, layout=split)) - 12 * tokens * 4 * 8 / 2
    assert without_scores == 12 * tokens * 512 * (10 + 24 / 2)
    shared = replace(split, sequence_parallel=True)
    assert activations(replace(MEGATRON, layout=shared)) == activations(MEGATRON) / 2


def test_model_states_are_18_bytes_and_zero_divides_them() -> None:
    counts = count_parameters(GPT)

    def states(stage: int) -> float:
        run = replace(MEGATRON, layout=Layout(data=8, zero_stage=stage))  # type: ignore[arg-type]
        return sum(terms(run).get(key, 0) for key in ("weights", "gradients", "master_weights", "optimizer"))

    per_parameter = [states(stage) / counts.total for stage in (0, 1, 2, 3)]
    assert per_parameter == pytest.approx([18, 6 + 12 / 8, 2 + 16 / 8, 18 / 8])


LADDER = [
    ("compiled", {"compiled": True}, "activations_norms"),
    ("chunked loss", {"logits": "chunked"}, "logits"),
    ("checkpointing", {"checkpointing": "full"}, "activations_mlp"),
    ("optimizer in backward", {"optimizer_in_backward": True}, "gradients"),
    ("activation offload", {"activation_offload": True}, "checkpoints"),
    ("8-bit AdamW", {"optimizer": "adamw-8bit"}, "optimizer"),
]


def test_each_switch_of_a_recipe_lowers_the_peak_by_a_term_of_its_own() -> None:
    run, before = RECIPE, training_memory(RECIPE)
    for name, switch, term in LADDER:
        run = replace(run, **switch)  # type: ignore[arg-type]
        after = training_memory(run)
        assert after.expected("allocated") < before.expected("allocated"), name
        assert amount(after, term) < amount(before, term), name
        before = after
    lora = replace(run, method="lora", lora=Lora(8, ("q", "v", "o")), optimizer="adamw", optimizer_in_backward=False)
    qlora = replace(lora, method="qlora", weight_format="nf4")
    assert training_memory(qlora).expected() < 0.7 * training_memory(lora).expected() < 0.5 * before.expected()


def amount(estimate: MemoryEstimate, key: str) -> float:
    return sum(term.expected for term in estimate.terms if term.key == key)


def test_lora_counts_its_matrices() -> None:
    assert adapter_parameters(LLAMA_7B, Lora(8, ("q", "v"))) == 4_194_304


def test_quantization_metadata_counts() -> None:
    run = replace(RECIPE, method="qlora", lora=Lora(8, ("q",)), engine="litgpt")
    plain, double = (terms(replace(run, weight_format=kind))["weights"] for kind in ("nf4", "nf4-dq"))
    linear = count_parameters(LLAMA_3B).layers
    assert (plain - double) / linear == pytest.approx(4 / 64 - (1 / 64 + 4 / 64 / 256), rel=0.15)


def test_the_last_stage_has_the_logits_and_the_first_the_micro_batches() -> None:
    run = replace(MEGATRON, layout=Layout(pipeline=4), gradient_accumulation=8)
    first, last = terms(run, stage=0), terms(run, stage=-1)
    assert "logits" not in first
    assert last["logits"] > 0
    assert first["activations_mlp"] == 4 * last["activations_mlp"]
    virtual = replace(run, layout=Layout(pipeline=4, virtual_pipeline=3))
    assert terms(virtual, stage=-1)["activations_mlp"] == pytest.approx(3 * last["activations_mlp"])
    fullest = training_memory(run)
    assert fullest.expected() == max(training_memory(run, stage=index).expected() for index in range(4))


def test_offload_takes_the_optimizer_off_the_card() -> None:
    run = replace(MEGATRON, engine="deepspeed", layout=Layout(data=8, zero_stage=2))
    kept, offloaded = terms(run), terms(replace(run, optimizer_offload=True))
    assert "optimizer" in kept
    assert "optimizer" not in offloaded


def test_experts_have_a_data_parallel_group_of_their_own() -> None:
    shape = models()["mistralai/Mixtral-8x7B-v0.1"].shape
    run = replace(MEGATRON, shape=shape, layout=Layout(data=8, expert=8, zero_stage=1))
    counts = count_parameters(shape)
    dense = counts.total - counts.routed_total
    expected = 8 * (dense / 8 + counts.routed_total / 8)
    assert terms(run)["optimizer"] == pytest.approx(expected, rel=1e-3)


def test_counters_add_up_and_a_range_holds_the_expected() -> None:
    estimate = training_memory(RECIPE, gpus()["h100-sxm-80"])
    assert estimate.expected("allocated") < estimate.expected("reserved") < estimate.expected("device")
    for term in estimate.terms:
        assert 0 <= term.low <= term.expected <= term.high, term.key
        assert term.formula
        assert term.source


def test_a_7b_lora_fits_a_24_gib_card_and_full_training_does_not() -> None:
    card = gpus()["rtx-4090-24"]
    lora = TrainingRun(
        shape=LLAMA_7B, method="lora", engine="transformers", layout=Layout(), sequence_length=1024, micro_batch=1,
        lora=Lora(16, ("q", "k", "v", "o")), master_weights=False, checkpointing="full",
    )  # fmt: skip
    assert training_memory(lora, card).high() < card.memory_bytes
    assert training_memory(replace(lora, method="full", lora=None), card).low() > card.memory_bytes


def test_selective_checkpointing_drops_what_it_names_and_else_the_attention_core() -> None:
    eager = replace(MEGATRON, attention="eager")
    core = terms(replace(eager, checkpointing="selective"))
    assert "activations_scores" not in core
    assert core["activations_mlp"] == terms(eager)["activations_mlp"]
    named = terms(replace(eager, checkpointing="selective", recompute_modules=("mlp", "layernorm")))
    assert named["activations_scores"] == terms(eager)["activations_scores"]
    assert named["activations_mlp"] < 0.2 * terms(eager)["activations_mlp"]
    assert named["activations_norms"] < terms(eager)["activations_norms"]
