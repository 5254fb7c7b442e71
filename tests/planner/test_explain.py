"""A pasted error message gets its cause and its remedy, in both languages."""

from __future__ import annotations

import pytest
from django.utils import translation

from planner.catalogue.symptoms import symptoms
from planner.compatibility.explain import LINE_LIMIT, TEXT_LIMIT, explain
from planner.web.words import sentence


@pytest.mark.parametrize("symptom", symptoms().values(), ids=lambda symptom: symptom.id)
def test_every_example_is_explained(symptom) -> None:
    [found] = explain(f"step 12\n{symptom.example}\nTraceback")
    assert found.symptom == symptom
    for language in ("en", "zh-hans"):
        with translation.override(language):
            assert "%(" not in sentence(found.cause) + sentence(found.fix)


def test_numbers_of_the_message_come_back_as_people_know_them() -> None:
    [found] = explain("RuntimeError: The NVIDIA driver on your system is too old (found version 12080).")
    assert found.cause.values["cuda"] == "12.8"
    assert "12.8" in sentence(found.cause)


def test_several_faults_come_in_the_order_of_the_log() -> None:
    log = f"{symptoms()['nccl-shm'].example}\n{symptoms()['nccl-timeout'].example}\n"
    assert [found.symptom.id for found in explain(log)] == ["nccl-shm", "nccl-timeout"]


def test_nothing_known_gives_nothing() -> None:
    assert explain("Segmentation fault (core dumped)") == ()


def test_what_lies_beyond_the_limits_is_not_searched() -> None:
    example = symptoms()["torch-cpu-build"].example
    assert explain("x" * LINE_LIMIT + example) == ()
    assert explain("\n" * TEXT_LIMIT + example) == ()
