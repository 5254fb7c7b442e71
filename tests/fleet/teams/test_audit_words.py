"""The audit page speaks the reader's language, whatever the program wrote."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone, translation

from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.audit import record
from fleet.teams.audit_words import ACTIONS, FIELDS, TARGETS, VIAS, line_of, value_text
from fleet.teams.models import AuditEntry

ACTION = re.compile(r"[a-z_]+\.[a-z_]+")


def recorded_actions() -> Iterator[str]:
    """What the code hands to `record`, in the call itself, by a variable called action, or by a table called AUDITED."""
    root = Path(settings.BASE_DIR)
    for path in (*(root / "fleet").rglob("*.py"), *(root / "jobs").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"record", "_record"}:
                yield from actions_in(node)
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in {"action", "AUDITED"}:
                yield from actions_in(node.value)


def actions_in(node: ast.AST) -> Iterator[str]:
    texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    yield from (text for text in texts if isinstance(text, str) and ACTION.fullmatch(text))


def test_every_action_that_the_code_records_has_its_words_and_no_other_has():
    assert set(recorded_actions()) == set(ACTIONS)


@pytest.fixture
def everything(acme, alice, by, make_instance) -> list[AuditEntry]:
    """Entries of the use-cases with most fields."""
    from fleet.inventory.machines import TypedMachine, add_machine, place_hold

    typed = TypedMachine(name="desk-01", ssh=[{"host": "203.0.113.4", "port": 22, "user": "ada", "kind": "direct"}])
    machine = add_machine(actor=by(alice), team=acme, typed=typed, labels={"use": "eval"}, owner=alice)
    place_hold(actor=by(alice), instance=machine, until=timezone.now(), reason="a run")
    return list(AuditEntry.objects.all())


def test_no_line_of_a_machine_shows_what_only_programs_read(everything):
    with translation.override("zh-hans"):
        lines = [line_of(entry) for entry in everything]
    for line in lines:
        assert not re.search(r"[a-z]\.[a-z]|instance", line.action)
        assert line.via in {"在页面上", "由 Rackrent 自身"}
        for change in line.changes:
            assert re.search(r"[\u4e00-\u9fff]|SSH|GPU", change.field), change
            assert not re.search(r"[{}\[\]]|True|False|T\d\d:\d\d", f"{change.old} {change.new}"), change


def test_every_field_that_the_use_cases_write_has_its_word(everything):
    assert {key for entry in everything for key in (*entry.old, *entry.new)} - {"managed"} <= set(FIELDS)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("managed", True, "yes"),
        ("monitor_only", False, "no"),
        ("until", "2026-11-30T12:34:56.123456+00:00", "2026-11-30 12:34"),
        ("expires_at", "soon", "soon"),
        ("price_per_hour", "2.500000", "2.5"),
        ("price_per_hour", "100.000000", "100"),
        ("poll_interval_seconds", 300, "5 min"),
        ("labels", {"use": "eval", "floor": "2"}, "use=eval, floor=2"),
        ("ssh", [{"host": "203.0.113.4", "port": 22, "user": "ada", "kind": "direct"}], "ada@203.0.113.4:22"),
        ("found", ["i-1", "i-2"], "i-1, i-2"),
        ("state", "running", "running"),
        ("tenancy", "dedicated_host", "whole host"),
        ("role", "admin", "Admin"),
        ("role", "emperor", "emperor"),
        ("name", "", ""),
        ("gpu_count", 0, "0"),
        ("reason", None, None),
    ],
)
def test_values_read_as_people_write_them(field, value, text):
    assert value_text(field, value) == text


def test_the_page_has_the_words_and_folds_long_changes(acme, alice, by, as_user, account, make_instance):
    machine = make_instance(name="train-01")
    new = {"kind": "person", "reason": "a run", "until": "2026-12-01T08:00:00+00:00"}
    record(actor=by(alice), team=acme, action="hold.place", target=machine, new=new)
    page = as_user(alice).get("/t/acme/settings/audit/").text
    assert "Machine held" in page
    assert "on a page" in page
    assert "<details><summary>" in page
    assert "2026-12-01 08:00" in page
    assert f"Instance {machine.pk}" not in page


def test_every_kind_of_target_has_its_word():
    assert {Instance.__name__, ProviderAccount.__name__} < set(TARGETS)
    assert set(VIAS) == {"page", "api", "agent", "link", "system"}
