"""What can be said of an environment that is known in part: a refusal is one, and what nobody knows stays unknown."""

from __future__ import annotations

import pytest

from planner.catalogue.gpus import gpus
from planner.compatibility.fit import Known, cuda_of, fit
from planner.compatibility.pitfalls import pitfalls
from planner.web.words import sentence

TRAIN = Known("2.8.0+cu128", "", "3.11.11", (("transformers", "4.56.1"),))
SERVE = Known("2.8.0+cu128", "", "3.11.11", (("vllm", "0.11.0"),))
H100, V100, T4 = gpus()["h100-sxm-80"], gpus()["v100-sxm2-32"], gpus()["t4-16"]


@pytest.mark.parametrize(
    ("gpu", "driver", "known", "level", "keys"),
    [
        (H100, "570.124.06", TRAIN, "full", ["compatibility.driver_full"]),
        (H100, "525.85.12", TRAIN, "minor", ["compatibility.driver_minor"]),
        (H100, "525.85.12", SERVE, "ptx-risk", ["compatibility.driver_minor", "compatibility.ptx"]),
        (T4, "515.65.01", TRAIN, "refused", ["compatibility.driver_below_floor"]),
        (V100, "580.95.05", TRAIN, "refused", ["compatibility.driver_full", "compatibility.no_kernels"]),
        (H100, "570.124.06", Known("2.8.0+cu128", "", "3.7.2"), "refused", ["compatibility.driver_full", "compatibility.python"]),
        (H100, "570.124.06", Known("2.7.1+cu128", "", "", (("vllm", "0.11.0"),)), "refused", ["compatibility.driver_full", "compatibility.torch_pin"]),
        (H100, "570.124.06", Known("2.8.0+cpu"), "refused", ["fit.cpu_build"]),
    ],
)  # fmt: skip
def test_what_is_known_whole_is_judged(gpu, driver, known, level, keys):
    found = fit(gpu, driver, known)
    assert (found.level, [each.reason.key for each in found.findings], found.unknown) == (level, keys, ())


@pytest.mark.parametrize(
    ("gpu", "driver", "known", "why"),
    [
        (H100, "", TRAIN, ["fit.no_driver"]),
        (None, "570.124.06", TRAIN, ["fit.no_gpu"]),
        (gpus()["mi300x-192"], "570.124.06", TRAIN, ["compatibility.not_nvidia"]),
        (H100, "570.124.06", Known(), ["fit.no_torch"]),
        (H100, "570.124.06", Known(cuda="12.8"), ["fit.no_torch"]),
        (H100, "570.124.06", Known("2.99.0+cu128"), ["fit.own_build"]),
        (H100, "580.95.05", Known("2.9.0a0+50eac811a6.nv25.09"), ["fit.own_build"]),
        (H100, "$(reboot)", TRAIN, ["fit.unreadable"]),
        (H100, "570.124.06", Known("<script>"), ["fit.unreadable"]),
    ],
)  # fmt: skip
def test_what_is_not_known_stays_so(gpu, driver, known, why):
    found = fit(gpu, driver, known)
    assert found.level is None
    assert [each.key for each in found.unknown] == why


def test_what_is_beside_the_point_is_not_checked_and_said_to_be():
    found = fit(H100, "570.124.06", Known("2.8.0+cu128", "", "x", (("vllm", "99.0"), ("deepspeed", "'; --"))))
    assert (found.level, found.unknown) == ("full", ())
    keys = ["fit.unreadable", "fit.unreadable", "compatibility.release_unknown"]
    assert [each.key for each in found.unchecked] == keys


def test_a_refusal_needs_no_driver():
    assert fit(V100, "", TRAIN).level == "refused"


def test_a_toolkit_alone_is_held_against_the_driver():
    found = fit(H100, "525.85.12", Known(cuda="13.0"))
    assert (found.level, found.findings[0].reason.key) == ("refused", "compatibility.driver_below_floor")
    assert fit(T4, "470.57.02", Known("2.99.0+cu128")).level == "refused"


def test_the_cuda_of_a_build_is_in_its_name():
    assert [cuda_of(each) for each in ("2.8.0+cu128", "2.1.0+cu92", "2.8.0", "2.8.0+cpu")] == [
        (12, 8),
        (9, 2),
        None,
        None,
    ]


def test_pitfalls_say_where_they_are_met():
    met = {each.symptom.id: each for each in pitfalls(SERVE)}
    assert "V100 SXM2 32GB" in met["no-kernel-image"].gpus
    assert "H100 SXM5 80GB" not in met["no-kernel-image"].gpus
    assert "GeForce RTX 4090 24GB" in met["rtx40-p2p"].gpus
    assert "525.60.13" in sentence(met["driver-too-old-torch"].why)
    assert "570.26" in sentence(met["ptx-unsupported-toolchain"].why)


def test_pitfalls_are_those_of_the_versions():
    without = {each.symptom.id for each in pitfalls(TRAIN)}
    assert "ptx-unsupported-toolchain" not in without
    assert "nccl-shm" not in {each.symptom.id for each in pitfalls(TRAIN, in_container=False)}
    assert [each.symptom.id for each in pitfalls(Known("2.8.0+cpu"))] == ["torch-cpu-build"]
    assert pitfalls(Known()) == ()


def test_every_pitfall_has_its_sentences():
    for known in (TRAIN, SERVE, Known("2.11.0", "", "", (("flash-attn", "2.8.3"), ("deepspeed", "0.17.5")))):
        assert all(sentence(each.why) and (each.fix is None or sentence(each.fix)) for each in pitfalls(known))
