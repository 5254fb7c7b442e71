"""What the mail says: `spend`'s totals, in both of its forms, in its reader's language, with nothing of a stranger's in its markup."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from fleet.costs.bills.shown import Confirmed, ConfirmedAccount
from fleet.costs.budgets.models import Budget
from fleet.costs.forecast.models import ForecastDay
from fleet.costs.month import Month
from fleet.costs.reports.mail import mail_of
from fleet.costs.reports.report import Report, change_of, report_of
from fleet.costs.spend.spend import spend
from fleet.teams.models import Project, Team
from tests.fleet.costs.reports.conftest import HOSTILE
from tests.fleet.costs.seeding import spend_on


@pytest.fixture
def month(acme, now) -> Month:
    return Month.of(acme, now=now, name="2026-11")


def made(team: Team, month: Month) -> Report:
    report = report_of(team=team, month=month)
    assert report is not None
    return report


@pytest.fixture
def both(acme, alice, month):
    """both() is the mail's text and its HTML."""

    def make(user=alice) -> tuple[str, str]:
        mail = mail_of(made(acme, month), team=acme, user=user)
        return str(mail.body), str(mail.alternatives[0][0])

    return make


@pytest.mark.usefixtures("november")
def test_its_totals_are_the_one_functions(acme, month):
    report = made(acme, month)
    said = spend(team=acme, start=date(2026, 11, 1), end=date(2026, 12, 1)).all
    assert (report.total, report.bought_nothing) == (said.total, said.bought_nothing) == (Decimal(1500), Decimal(300))
    assert sum(bar.amount for bar in report.bars) == said.total
    assert sum(line.amount for line in report.projects) == said.total
    assert sum(line.amount for line in report.accounts) == said.total
    assert report.unconverted == {"CNY": Decimal(70)}
    assert (report.before, report.change_percent) == (Decimal(1000), 50)


@pytest.mark.usefixtures("november")
def test_both_forms_say_the_same(both):
    for form in both():
        for word in (
            "$1,500",
            "50% more than October, which came to $1,000",
            "$300 bought nothing: 20%",
            "Vision",
            "⬓ Held idle",
        ):
            assert word in form
        assert "¥70.00 has no rate to USD" in form
        assert "/t/acme/costs/?month=2026-11" in form
        assert "/t/acme/costs/report/2026-11/" in form


@pytest.mark.usefixtures("november")
def test_what_others_named_is_no_markup(both, acme):
    acme.name = f"{HOSTILE} & co"
    text, html = both()
    assert HOSTILE not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert HOSTILE in text
    assert "<script" not in html


@pytest.mark.usefixtures("november")
def test_it_speaks_its_readers_language(both, alice):
    alice.language = "zh-hans"
    text, html = both(alice)
    assert "2026年11月" in text
    assert 'lang="zh-hans"' in html


@pytest.mark.usefixtures("november")
def test_the_chart_is_a_bar_a_day_in_a_table_that_loads_nothing(acme, month, both):
    report = made(acme, month)
    assert len(report.bars) == 30
    assert max(bar.useful_percent + bar.nothing_percent for bar in report.bars) == 100
    assert [bar.nothing_percent for bar in report.bars if bar.nothing_percent] == [86, 17]
    html = both()[1]
    assert html.count('class="well"') == 30
    assert "src=" not in html.replace("img src=x", "")


@pytest.mark.usefixtures("november")
def test_budgets_stand_as_they_stood_when_the_month_ended(acme, alice, both):
    for name, amount in (("All of it", 1200), ("Ample", 6000)):
        Budget.objects.create(team=acme, name=name, amount=amount, currency="USD", created_by=alice)
    for form in both():
        assert "$1,500 of $1,200" in form
        assert "125%" in form
        assert "$1,500 of $6,000" in form


@pytest.mark.usefixtures("november")
def test_it_says_how_much_of_it_bills_bear_out(both, account, monkeypatch):
    for form in both():
        assert "No bill of the month has been read" in form
    found = Confirmed((ConfirmedAccount(account, "csv", datetime(2026, 12, 1, tzinfo=UTC)),), Decimal("0.914"))
    monkeypatch.setattr("fleet.costs.reports.report.confirmed_by_bills", lambda **_asked: found)
    for form in both():
        assert "Bills bear out 91% of it." in form


@pytest.mark.usefixtures("november")
def test_a_forecast_is_held_against_what_came(acme, both):
    for day, said in ((3, 900), (10, 1650), (20, 1510)):
        ForecastDay.objects.create(
            team=acme,
            scope="team",
            day=date(2026, 11, day),
            currency="USD",
            amount=40,
            month=date(2026, 11, 1),
            will_end=said,
            low=1400,
            high=1800,
            made_at=datetime(2026, 11, day, tzinfo=UTC),
        )
    for form in both():
        assert "The forecast of November 10 was $1,650, 10% too high. It ended within its range." in form


def test_a_month_with_credits_alone_says_so(acme, alice, month, account, both):
    spend_on(acme, date(2026, 11, 5), -20, account=account, meter="adjustment")
    text, html = both()
    assert "-$20" in text
    assert "Nothing is known of October" in html


def test_without_money_there_is_no_report(acme, month):
    assert report_of(team=acme, month=month) is None


def test_many_projects_end_in_one_line_and_still_add_up(acme, month, make_instance):
    machine = make_instance()
    for number in range(12):
        project = Project.objects.create(team=acme, name=f"p{number}", slug=f"p{number}")
        spend_on(acme, date(2026, 11, 3), number + 1, instance=machine, project=project)
    report = made(acme, month)
    assert (len(report.projects), report.projects[-1].others) == (9, 4)
    assert sum(line.amount for line in report.projects) == report.total == 78


@pytest.mark.parametrize(
    ("total", "before", "change"), [("150", "100", 50), ("50", "100", -50), ("2000", "2", None), ("5", None, None)]
)
def test_a_percentage_against_next_to_nothing_is_left_out(total, before, change):
    assert change_of(Decimal(total), None if before is None else Decimal(before)) == change
