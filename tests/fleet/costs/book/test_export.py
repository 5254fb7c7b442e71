"""The observation log as a file: replayed, it gives the intervals and totals that the database has."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from fleet.costs.book.build import build_ledger
from fleet.costs.book.entries import interval_of, stored_of
from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.charges import Rules, charges_of, lines_of
from fleet.costs.ledger.intervals import Meter
from fleet.costs.ledger.sightings import COLUMNS
from fleet.inventory.models import ProviderAccount
from fleet.providers.registry import adapters
from tests.fleet.costs.book.conftest import NOW, at, gone, log, missed, stopped

UNTIL = at(3 * 24 * 60)


def exported(*options):
    out = StringIO()
    call_command("observation_log", *options, stdout=out)
    return out.getvalue()


def replayed(tmp_path, text, provider):
    path = tmp_path / "log.csv"
    path.write_text(text, newline="")
    out = StringIO()
    call_command("ledger_replay", str(path), "--provider", provider, "--json", "--until", UNTIL.isoformat(), stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def hourly(acme, make_instance):
    """A machine that is charged by whole hours, with everything that may happen to one; its name begins like a formula."""
    account = ProviderAccount.objects.create(team=acme, kind="vultr", name="Vultr")
    machine = make_instance(name="=cmd, b", account=account)
    log(machine, 0, state="unknown", billing="unknown", price=None, rule_version=0, raw_state="")
    log(machine, 1, until=1, started=-0.5, market="spot")
    log(machine, 20.01, until=19, started=-0.5, market="spot", price="2.123456")
    stopped(machine, 130, until=129, stopped=128.5, storage_price_per_hour=Decimal("0.013"))
    missed(machine, 140, until=139)
    stopped(machine, 141, until=139, storage_price_per_hour=Decimal("0.013"))
    log(machine, 200, until=199, started=199.5, currency="CNY", price="17")
    log(machine, 300, until=299, started=280, currency="CNY", price="17")
    missed(machine, 400, until=399)
    gone(machine, 402, until=399)
    build_ledger(now=NOW)
    return machine


def test_replayed_it_gives_what_the_database_has(hourly, tmp_path):
    answer = replayed(tmp_path, exported("--machine", str(hourly.pk)), "vultr")
    rows = LedgerInterval.objects.select_related("meter")
    stored = [interval_of("x", stored_of(row).entry) for row in rows]
    keys = ("meter", "market", "start", "end", "unit", "run", "currency")
    made = sorted(tuple(str(one[key]) for key in keys) for one in answer["intervals"])
    assert made == sorted(
        (
            one.meter.value,
            one.market,
            one.start.isoformat().replace("+00:00", "Z"),
            one.end.isoformat().replace("+00:00", "Z") if one.end else "None",
            one.price.unit.value,
            str(one.run),
            one.price.currency,
        )
        for one in stored
        if one.meter is not Meter.MINIMUM
    )
    # Minimums lie in the database and are reckoned by the command: the stored ones are counted as they are.
    lines = lines_of(charges_of([one for one in stored if one.meter is not Meter.MINIMUM], rules=hours(), until=UNTIL))
    assert {(line["meter"], line["currency"]): Decimal(line["amount"]) for line in answer["lines"]} == {
        (line.meter.value, line.currency): line.amount for line in lines
    }
    minimums = [one for one in stored if one.meter is Meter.MINIMUM]
    assert [(one.run, one.seconds) for one in sorted(minimums, key=lambda one: one.run)] == [
        (line_run, seconds) for line_run, seconds in expected_minimums(stored)
    ]
    assert minimums


def hours():
    return Rules.of(adapters()["vultr"].semantics)


def expected_minimums(stored):
    """Whole hours less what ran, by run."""
    ran: dict[int, int] = {}
    for one in stored:
        if one.meter is Meter.COMPUTE:
            ran[one.run] = ran.get(one.run, 0) + (one.seconds or 0)
    return [(run, -seconds % 3600) for run, seconds in sorted(ran.items())]


def test_the_columns_are_those_of_the_replay_and_names_are_safe(hourly):
    rows = list(csv.reader(StringIO(exported("--team", "acme"))))
    assert rows[0] == [*COLUMNS, "storage_price_per_hour"]
    assert {row[2] for row in rows[1:]} == {f"{hourly.pk} =cmd, b"}


def test_since_begins_with_what_held_then(hourly):
    rows = list(csv.DictReader(StringIO(exported("--since", at(190).isoformat(), "--until", at(250).isoformat()))))
    assert [row["state"] for row in rows] == ["stopped", "stopped", "running"]
    assert rows[0]["seen_at"] == "2026-11-10T14:21:00Z"


@pytest.mark.parametrize("options", [("--team", "rival"), ("--account", "999999"), ("--machine", "999999")])
def test_what_is_not_there_is_said(hourly, rival, options):
    with pytest.raises(CommandError, match="no such machine"):
        exported(*options)


class TestOverTheApi:
    def get(self, client, **parameters):
        return client.get("/api/v1/costs/observations.csv", parameters)

    def test_it_is_the_same_file(self, hourly, as_user, vera):
        answer = self.get(as_user(vera))
        assert b"".join(answer.streaming_content).decode() == exported("--team", "acme")
        assert answer.headers["Content-Type"] == "text/csv"
        assert 'filename="observations-acme.csv"' in answer.headers["Content-Disposition"]

    def test_it_is_filtered(self, hourly, make_instance, as_user, vera):
        log(make_instance(name="other"), 0)
        for parameters in ({"instance": hourly.pk}, {"account": hourly.account_id}):
            text = b"".join(self.get(as_user(vera), **parameters).streaming_content).decode()
            assert "other" not in text
            assert "=cmd" in text

    def test_strangers_get_nothing_of_it(self, hourly, as_user, charlie):
        assert b"=cmd" not in b"".join(self.get(as_user(charlie), instance=hourly.pk).streaming_content)
        assert self.get(as_user(charlie), team="acme").status_code == 404

    def test_a_bad_time_is_named(self, as_user, vera):
        answer = self.get(as_user(vera), since="yesterday")
        assert answer.status_code == 400
        assert "since" in answer.content.decode()
