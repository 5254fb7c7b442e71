"""Log texts in the shapes of public reports lead to the right finding and to no other."""

from __future__ import annotations

from collections import Counter

import pytest

from jobs.diagnosis.diagnose import diagnose
from jobs.diagnosis.rules import oom_serving, oom_training
from planner.catalogue.symptoms import symptoms
from tests.jobs.diagnosis.logs import LOGS

# A serving engine's own texts, an unknown cause among them, have three shapes each as well.
VARIANTS = 3


@pytest.mark.parametrize("name", LOGS)
def test_each_log_has_its_finding(name: str) -> None:
    evidence, expected = LOGS[name]
    assert {finding.code for finding in diagnose(evidence)} == expected


@pytest.mark.parametrize("name", [name for name, (_evidence, expected) in LOGS.items() if "symptoms/" in name])
def test_a_symptom_is_the_one_of_the_table(name: str) -> None:
    (finding,) = diagnose(LOGS[name][0])
    wanted = name.removeprefix("symptoms/").rsplit("_", 1)[0]
    named = [reason.values["id"] for reason in finding.because if reason.code == "symptom"]
    assert named in ([wanted], [])
    assert finding.lines


def test_every_symptom_and_every_way_out_of_memory_has_three_logs() -> None:
    of_symptoms = Counter(name.removeprefix("symptoms/").rsplit("_", 1)[0] for name in LOGS if "symptoms/" in name)
    assert {symptom: of_symptoms[symptom] >= VARIANTS for symptom in symptoms()} == dict.fromkeys(symptoms(), True)
    of_codes = Counter(code for _evidence, expected in LOGS.values() for code in expected)
    codes = [f"oom_{part}" for part in oom_training.REMEDIES]
    codes += [f"oom_serving_{kind}" for kind in oom_serving.REMEDIES]
    codes += ["kv_cache_small", "host_memory", "stalled", "rank_died", "no_rendezvous", "disk_full", "loss_nan"]
    assert {code: of_codes[code] for code in codes if of_codes[code] < VARIANTS} == {}
