"""From checked input to a plan."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from planner.plan import Chosen, ServingPlan, TrainingPlan, serving_plan, training_plan
from planner.runs import Lora, WeightFormat
from planner.web.inputs import LORA_TARGETS, shape_of_input
from planner.wishes import Market, ServingWish, TrainingWish

Given = Mapping[str, Any]


def make_plan(given: Given) -> TrainingPlan | ServingPlan:
    """`given`: validated data of PlanInput."""
    if given["work"] == "serving":
        return serving_plan(serving_wish(given), market_of(given), chosen_of(given))
    return training_plan(training_wish(given), market_of(given), chosen_of(given))


def training_wish(given: Given) -> TrainingWish:
    method, compute = given["method"], given["compute_dtype"]
    adapts = method != "full"
    return TrainingWish(
        shape=shape_of_input(given),
        method=method,
        sequence_length=given["sequence_length"],
        global_batch=given["global_batch"],
        samples=given["samples"],
        epochs=given["epochs"],
        tokens_per_sample=given["tokens_per_sample"],
        lora=Lora(given["lora_rank"], LORA_TARGETS[given["lora_targets"]]) if adapts else None,
        compute_dtype=compute,
        weight_format=_trained_format(method, compute),
        optimizer=given["optimizer"],
        # Adapters are kept in 32 bits as it is.
        master_weights=given["master_weights"] and not adapts and compute != "fp32",
        attention=given["attention"],
        logits=given["logits"],
        checkpointing=given["checkpointing"] or None,
        packed=given["packed"],
        compiled=given["compiled"],
        personal_data=given["personal_data"],
        deadline_hours=given["deadline_hours"],
        budget=given["budget"],
    )


def _trained_format(method: str, compute: str) -> WeightFormat:
    if method == "qlora":
        return "nf4-dq"
    return "fp32" if compute == "fp32" else "fp16" if compute == "fp16" else "bf16"


def serving_wish(given: Given) -> ServingWish:
    compute = "fp16" if given["weight_format"] == "fp16" else "fp32" if given["weight_format"] == "fp32" else "bf16"
    return ServingWish(
        shape=shape_of_input(given),
        concurrency=given["concurrency"],
        prompt_tokens=given["prompt_tokens"],
        output_tokens=given["output_tokens"],
        engine=given["engine"],
        weight_format=given["weight_format"],
        compute_dtype=compute,  # type: ignore[arg-type]  # one of three words of DType
        kv_dtype=given["kv_dtype"],
        max_model_len=given["max_model_len"],
        memory_utilization=given["memory_utilization"],
        first_token_seconds=given["first_token_seconds"],
        seconds_per_token=given["seconds_per_token"],
        personal_data=given["personal_data"],
    )


def market_of(given: Given) -> Market:
    """What somebody pays for the chosen GPU goes before the table."""
    own: tuple[tuple[str, Decimal], ...] = ()
    if given["gpu"] and given["price_per_gpu_hour"] is not None:
        own = ((given["gpu"], given["price_per_gpu_hour"]),)
    return Market(
        gpu_ids=tuple(sorted(given["gpu_ids"])),
        most_gpus=given["most_gpus"],
        price_kinds=tuple(sorted(given["price_kinds"])),
        currency=given["currency"],
        link=given["link"] or None,
        priority=given["priority"],
        team_prices=own,
    )


def chosen_of(given: Given) -> Chosen:
    return Chosen(given["gpu"] or None, given["count"])
