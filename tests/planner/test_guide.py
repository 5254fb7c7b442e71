"""The guide to fine-tuning for a field: amounts by method, checklists, and what the evaluation has to hold."""

from __future__ import annotations

from planner.guide import guide


def keys(**asked: object) -> set[str]:
    return {item.key for step in guide(**asked) for item in step.items}  # type: ignore[arg-type]


def test_adapters_ask_for_thousands_and_full_training_for_tens_of_thousands() -> None:
    assert "guide.data.adapter" in keys(method="lora", samples=None, epochs=None)
    [amount, *_] = guide(method="full", samples=None, epochs=None)[0].items
    assert amount.values["least"] == 20_000


def test_too_little_data_and_too_many_epochs_are_said() -> None:
    found = keys(method="lora", samples=300, epochs=12)
    assert {"guide.data.too_few", "guide.data.epochs"} <= found
    assert not {"guide.data.too_few", "guide.data.epochs"} & keys(method="lora", samples=5000, epochs=3)


def test_the_evaluation_holds_terminology_reasoning_and_refusal() -> None:
    found = keys(method="lora", samples=5000, epochs=3)
    assert {"guide.evaluation.terminology", "guide.evaluation.reasoning", "guide.evaluation.refusal"} <= found
    assert {"guide.privacy.names", "guide.cleaning.duplicates"} <= found


def test_a_quantized_model_is_judged_again() -> None:
    assert "guide.evaluation.quantized" in keys(method="lora", samples=1, epochs=1, quantized_for_serving=True)
