"""A real export of version 1.0 before the published validator, in its own virtual environment (`make focus`)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import time_machine

from tests.fleet.costs.exports.conftest import body_of

PROJECT = Path(__file__).resolve().parents[4]
HOME = PROJECT / ".venv-focus"

pytestmark = pytest.mark.usefixtures("month_of_money")


@pytest.fixture
def validate(tmp_path):
    """validate(file) is what the validator prints of a CSV file of 1.0."""
    if not (HOME / "bin/focus-validator").exists():
        reason = "the validator is not installed (make focus)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)

    def run(body: bytes) -> str:
        file = tmp_path / "focus.csv"
        file.write_bytes(body)
        command = [HOME / "bin/focus-validator", "--data-file", file, "--validate-version", "1.0"]
        # It looks for its list of currencies from the directory that it is installed in.
        home = next(HOME.glob("lib/python3*/site-packages"))
        done = subprocess.run(command, check=False, cwd=home, capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    return run


@pytest.fixture
def export(as_user, vera) -> bytes:
    with time_machine.travel("2026-12-04T10:00:00Z", tick=False):
        return body_of(as_user(vera), {"month": "2026-11", "format": "focus", "version": "1.0"})


def test_an_export_passes(validate, export):
    said = validate(export)
    assert "Validation succeeded" in said, said


@pytest.mark.parametrize(
    ("good", "wrong", "rule"),
    [
        (b",Usage-Based,", b",Monthly,", "ChargeFrequency_Enum"),
        (b",USD,", b",DOLLAR,", "BillingCurrency_IsCurrencyCode"),
        (b"SkuPriceId", b"SkuPrice", "SkuPriceId_Required"),
    ],
)
def test_a_file_with_a_mistake_does_not(validate, export, good, wrong, rule):
    assert f"{rule} failed" in validate(export.replace(good, wrong))
