"""manage.py plan and catalog_check."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from planner import tables
from planner.catalogue.prices import purchase_prices
from planner.catalogue.rows import CatalogueError


def run(*words: str, **options: object) -> str:
    out = StringIO()
    call_command("plan", *words, stdout=out, **options)
    return out.getvalue()


def test_it_gives_the_whole_answer_as_json() -> None:
    told = json.loads(run("method=qlora", "gpu=rtx-4090-24", "price_kinds=spot,community", json=True))
    assert (told["best"]["gpu"], told["best"]["gpus"]) == ("rtx-4090-24", 1)
    assert told["query"] == "method=qlora&price_kinds=community&price_kinds=spot&gpu=rtx-4090-24"
    assert {"memory", "times", "host", "ladder", "software", "owning", "guide"} <= set(told)


def test_words_go_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"work": "serving", "model": "Qwen/Qwen2.5-7B", "gpu": "l4-24"}))
    told = json.loads(run("gpu=a10-24", input=str(file), json=True))
    assert (told["work"], told["model"]["name"], told["best"]["gpu"]) == ("serving", "Qwen2.5-7B", "a10-24")


def test_a_config_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "llama"')
    with pytest.raises(CommandError, match=r"^config: This is no JSON from line 1"):
        run(f"config=@{file}")
    with pytest.raises(CommandError, match=r"^config: .*No such file"):
        run(f"config=@{tmp_path}/other.json")


def test_for_people_it_lists_the_first_options_and_the_advice() -> None:
    lines = run("method=qlora").splitlines()
    assert lines[0].endswith("data=1 tensor=1 pipeline=1")
    assert "QLoRA saves memory, not time" in lines[10]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["samples=-3"], "samples: Give a whole number from 1"),
        (["samples"], "samples: write name=value"),
        (["simples=3"], r"simples: .*`samples`"),
    ],
)
def test_wrong_input_names_its_field(words: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(*words)


@pytest.mark.parametrize("text", ["[1]", "{", None])
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "run.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CommandError, match="--input: "):
        run(input=str(file))


def test_the_tables_are_whole() -> None:
    out = StringIO()
    call_command("catalog_check", stdout=out)
    assert "gpus: 53 rows" in out.getvalue()


def test_a_fault_ends_the_check_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise CatalogueError("gpus.csv, line 3, memory_gib: 'x' is no number")

    monkeypatch.setattr(tables, "_TABLES", [("gpus", broken, tables._no_check), *tables._TABLES[1:]])
    with pytest.raises(CommandError, match="line 3, memory_gib"):
        call_command("catalog_check", stdout=StringIO())


def test_figures_in_another_unit_and_references_to_nothing_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = purchase_prices()["h100-sxm-80"]
    monkeypatch.setattr(tables, "RATES_FLOPS", (1e15, 1e16))
    monkeypatch.setattr(tables, "purchase_prices", lambda: {"h1000": listed})
    _, faults = tables.check_catalogue()
    assert any("a100-sxm-80, bf16: 3.12e+14 does not lie between" in fault for fault in faults)
    assert "purchase_prices.csv, h1000: gpus.csv has no such GPU" in faults


def test_a_table_that_nobody_reads_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "moons.csv").write_text("id\n")
    assert list(tables._unread(tmp_path)) == ["moons.csv: catalog_check does not read it"]
