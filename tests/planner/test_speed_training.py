"""The time of a training step: what makes it longer, and by how much."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogue.gpus import gpus
from planner.catalogue.links import Network, network_port, nvlink, pcie, usual_network
from planner.runs import Layout, Lora
from planner.speed.cards import NoRateError
from planner.speed.training import training_speed
from tests.planner.speed_runs import A100, H100, MIXTURE, faster, training

LAYOUTS = (
    Layout(),
    Layout(data=8, zero_stage=3),
    Layout(data=2, tensor=4, zero_stage=1),
    Layout(data=4, tensor=2, pipeline=4, zero_stage=1),
    Layout(data=8, context=2, zero_stage=1),
)
layouts = st.sampled_from(LAYOUTS)
lengths = st.sampled_from((128, 1024, 8192, 65536))


@settings(max_examples=60, deadline=None)
@given(layout=layouts, length=lengths, factor=st.floats(1, 20), full=st.booleans())
def test_a_faster_card_is_never_slower(layout: Layout, length: int, factor: float, full: bool) -> None:
    run = training(layout=layout, sequence_length=length, checkpointing="full" if full else "none")
    network = usual_network(A100)
    slow, fast = (training_speed(run, gpu, network).step.expected for gpu in (A100, faster(A100, factor)))
    assert fast <= slow * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(layout=layouts, length=lengths, factor=st.floats(1, 100))
def test_a_faster_link_is_never_slower(layout: Layout, length: int, factor: float) -> None:
    run = training(layout=layout, sequence_length=length)
    slow = Network(pcie(A100), network_port("ethernet-10"))
    fast = Network(
        replace(slow.inside, bandwidth=slow.inside.bandwidth * factor),
        replace(slow.between, bandwidth=slow.between.bandwidth * factor),
    )
    assert training_speed(run, A100, fast).step.expected <= training_speed(run, A100, slow).step.expected * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(layout=layouts, length=st.integers(64, 32768), more=st.integers(0, 32768))
def test_more_tokens_never_take_less_time(layout: Layout, length: int, more: int) -> None:
    short, long = (training(layout=layout, sequence_length=length + extra) for extra in (0, more))
    assert training_speed(short, H100).step.expected <= training_speed(long, H100).step.expected * (1 + 1e-9)


def test_expected_lies_between_low_and_high() -> None:
    speed = training_speed(training(layout=LAYOUTS[3]), H100)
    for term in speed.step.terms:
        assert term.low <= term.expected <= term.high
        assert term.source
        assert term.formula
    low, high = speed.tokens_per_second_range
    assert low < speed.tokens_per_second < high


def test_formulas_end_in_their_numbers() -> None:
    term = training_speed(training(), A100).step.term("matrices")
    assert term.formula.startswith("8 x (2 x weights x tokens")
    assert "FLOP / 2.434e+14 FLOP/s" in term.formula


def test_checkpointing_costs_a_forward_pass_of_the_layers() -> None:
    kept, again = (training_speed(training(checkpointing=how), A100).step for how in ("none", "full"))
    assert again.term("matrices").expected == pytest.approx(4 / 3 * kept.term("matrices").expected)
    assert again.term("head").expected == kept.term("head").expected


def test_selective_checkpointing_computes_only_what_it_names_again() -> None:
    kept = training_speed(training(), A100).step
    core, mlp = (
        training_speed(training(checkpointing="selective", recompute_modules=modules), A100).step
        for modules in ((), ("mlp",))
    )
    assert core.term("matrices").expected == kept.term("matrices").expected
    assert core.term("attention").expected > kept.term("attention").expected
    assert mlp.term("matrices").expected == pytest.approx((1 + 0.81 / 3) * kept.term("matrices").expected, rel=0.01)
    assert mlp.term("attention").expected == kept.term("attention").expected


@pytest.mark.parametrize("what", ["parameter_offload", "activation_offload"])
def test_what_waits_on_the_host_goes_over_pcie(what) -> None:
    run = training(**{what: True}, sequence_length=512)
    term = training_speed(run, A100).step.term(what)
    assert term.expected > 0
    assert training_speed(run, replace(A100, pcie_generation=5)).step.term(what).expected < term.expected


def test_an_optimizer_on_the_host_waits_for_pcie_and_its_memory() -> None:
    here, there = (
        training_speed(training(optimizer_offload=away), A100).step.term("optimizer") for away in (False, True)
    )
    assert there.expected > 5 * here.expected


def test_muon_multiplies_where_adam_does_not() -> None:
    adam, muon = (training_speed(training(optimizer=name), A100).step.term("optimizer") for name in ("adamw", "muon"))
    assert muon.expected > adam.expected


def test_frozen_weights_get_no_gradient() -> None:
    full = training_speed(training(), A100).step
    lora = training_speed(training(method="lora", lora=Lora(8, ("q", "v"))), A100).step
    assert lora.term("matrices").expected == pytest.approx(2 / 3 * full.term("matrices").expected, rel=0.02)
    assert lora.term("optimizer").expected < full.term("optimizer").expected / 100


def test_the_bubble_is_p_minus_one_over_v_micro_batches() -> None:
    run = training(layout=Layout(pipeline=4), gradient_accumulation=16)
    plain = training_speed(run, A100).step.term("bubble").expected
    interleaved = replace(run, layout=replace(run.layout, virtual_pipeline=3))
    assert training_speed(interleaved, A100).step.term("bubble").expected == pytest.approx(plain / 3, rel=0.05)
    more = training_speed(replace(run, gradient_accumulation=32), A100).step
    assert more.term("bubble").expected == plain
    assert plain / more.expected < plain / training_speed(run, A100).step.expected


def test_tensor_parallelism_over_pcie_shows() -> None:
    run = training(layout=Layout(tensor=8), gradient_accumulation=4)
    fast = training_speed(run, A100, Network(nvlink(A100) or pcie(A100), network_port("infiniband-200")))
    slow = training_speed(run, A100, Network(pcie(A100), network_port("ethernet-25")))
    assert slow.step.expected > 1.5 * fast.step.expected
    assert slow.step.term("tensor_parallel").expected > slow.step.expected / 2


def test_a_slow_network_shows_in_data_parallelism() -> None:
    run = training(layout=Layout(data=16), gradient_accumulation=1)
    inside = nvlink(A100) or pcie(A100)
    fast = training_speed(run, A100, Network(inside, network_port("infiniband-200")))
    slow = training_speed(run, A100, Network(inside, network_port("ethernet-10", ports_per_gpu=1 / 8)))
    assert slow.step.term("gradients").expected > 10 * fast.step.term("gradients").expected


def test_experts_spread_over_machines_wait_for_the_network() -> None:
    run = training(shape=MIXTURE, layout=Layout(data=64, expert=64, zero_stage=1), engine="nemo")
    inside = replace(run, layout=replace(run.layout, expert=8))
    far, near = (training_speed(it, H100).step.term("expert_parallel").expected for it in (run, inside))
    assert far > 5 * near


def test_mfu_counts_neither_recomputation_nor_adapters() -> None:
    kept, again = (training_speed(training(checkpointing=how), A100) for how in ("none", "full"))
    assert kept.model_flops_per_token == again.model_flops_per_token
    assert again.mfu < kept.mfu < 0.78


def test_short_sequences_wait_for_an_eager_host() -> None:
    run = training(engine="transformers", method="lora", lora=Lora(8, ("q", "k", "v", "o", "gate", "up", "down")))
    short, shorter, long = (
        training_speed(replace(run, sequence_length=length), H100).step for length in (128, 64, 8192)
    )
    assert short.term("host").expected > short.expected / 2
    assert short.expected == pytest.approx(shorter.expected, rel=0.01)
    assert long.term("host").expected == 0


def test_a_card_without_rates_is_named() -> None:
    with pytest.raises(NoRateError, match="Kunlun P800"):
        training_speed(training(), gpus()["kunlun-p800-96"])
    with pytest.raises(NoRateError, match="fp8"):
        training_speed(training(compute_dtype="fp8"), A100)


def test_cards_that_do_not_reach_each_others_memory_overlap_no_all_reduce() -> None:
    run = training(layout=Layout(data=2, tensor=4, zero_stage=1, sequence_parallel=True), engine="megatron")
    over = {
        link.medium: training_speed(run, A100, Network(link, network_port("ethernet-10"))).step.term("tensor_parallel")
        for link in (nvlink(A100), pcie(A100))
        if link
    }
    assert over["nvlink"].hidden > 0
    assert over["pcie"].hidden == 0


def test_ranks_with_a_part_of_the_sequence_send_a_part_of_the_tokens_to_experts() -> None:
    whole = Layout(data=16, tensor=4, expert=8, expert_tensor=1, zero_stage=1)
    parts = replace(whole, sequence_parallel=True)
    all_tokens, own_tokens = (
        training_speed(training(shape=MIXTURE, layout=layout, engine="nemo"), H100).step.term("expert_parallel")
        for layout in (whole, parts)
    )
    assert own_tokens.expected + own_tokens.hidden < 0.5 * (all_tokens.expected + all_tokens.hidden)
