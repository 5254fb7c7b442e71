"""One month of a team, seen listing by listing, against a bill that was worked out by hand: October 2026 in Berlin.

The month lasts from 30 September 22:00 to 31 October 23:00 UTC: 745 hours, for clocks go back on the 25th. All times below are UTC.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from io import StringIO

import pytest
from django.core.management import call_command

from fleet.costs.book.build import build_ledger, rebuild_ledger
from fleet.costs.charges.charges import NewCharge, add_charge
from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.models import Adjustment, ExchangeRate
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.spend import By, Where, spend
from fleet.inventory.models import Instance, Observation, ProviderAccount
from fleet.teams.audit import Actor

FIRST, PAST_LAST = date(2026, 10, 1), date(2026, 11, 1)
# Half of it summed on the way, and the rest after it was over, as it comes in life.
ON_THE_WAY, AFTERWARDS = datetime(2026, 10, 16, tzinfo=UTC), datetime(2026, 11, 1, 8, tzinfo=UTC)

# What listings showed, in the order of time. One line a change: when it was seen; until when the values before were still seen; the machine;
# what it was rented as; state; what is billed; price an hour; disks an hour; currency; when the provider says that it started; that it stopped.
LISTINGS = """
09-28 00:00:20 |                | train-01  | on_demand | running    | full    | 2.00  |      | USD | 09-28 00:00:00 |
10-03 00:02:00 |                | cn-01     | on_demand | running    | full    | 17.50 |      | CNY | 10-03 00:00:00 |
10-03 10:02:00 | 10-03 09:58:00 | cn-01     | on_demand | running    | full    | 17.50 |      | CNY | 10-03 00:00:00 |                | not listed
10-03 10:06:00 | 10-03 09:58:00 | cn-01     | on_demand | terminated | none    | 17.50 |      | CNY | 10-03 00:00:00 |                | not listed
10-05 08:00:40 |                | spot-01   | spot      | running    | full    | 0.90  | 0.06 | USD | 10-05 08:00:00 |
10-05 10:00:30 | 10-05 09:59:30 | spot-01   | spot      | running    | full    | 1.10  | 0.06 | USD | 10-05 08:00:00 |
10-05 13:00:30 | 10-05 12:59:30 | spot-01   | spot      | running    | full    | 0.80  | 0.06 | USD | 10-05 08:00:00 |
10-05 14:31:00 | 10-05 14:30:00 | spot-01   | spot      | terminated | none    | 0.80  | 0.06 | USD | 10-05 08:00:00 | 10-05 14:30:00
10-06 09:00:40 |                | burst-01  | on_demand | running    | full    | 3.00  |      | USD | 10-06 09:00:00 |
10-06 09:21:00 | 10-06 09:20:00 | burst-01  | on_demand | terminated | none    | 3.00  |      | USD | 10-06 09:00:00 | 10-06 09:20:00
10-06 09:40:40 |                | burst-02  | on_demand | running    | full    | 3.00  |      | USD | 10-06 09:40:00 |
10-06 11:51:00 | 10-06 11:50:00 | burst-02  | on_demand | terminated | none    | 3.00  |      | USD | 10-06 09:40:00 | 10-06 11:50:00
10-07 10:00:00 |                | failed-01 | unknown   | unknown    | unknown |       |      | USD |                |
10-07 10:01:00 | 10-07 10:01:00 | failed-01 | on_demand | error      | none    | 80.00 |      | USD |                |
10-08 00:00:40 |                | secret-01 | on_demand | running    | full    |       |      | USD | 10-08 00:00:00 |
10-08 02:00:40 | 10-08 01:59:40 | secret-01 | on_demand | terminated | none    |       |      | USD | 10-08 00:00:00 | 10-08 02:00:00
10-10 12:02:00 | 10-10 11:58:00 | train-01  | on_demand | running    | full    | 2.50  |      | USD | 09-28 00:00:00 |
10-12 06:00:40 |                | lab-01    | on_demand | running    | full    | 4.00  | 0.10 | USD | 10-12 06:00:00 |
10-12 18:00:40 | 10-12 17:59:40 | lab-01    | on_demand | stopped    | storage | 4.00  | 0.10 | USD | 10-12 06:00:00 | 10-12 18:00:00
10-13 06:00:40 | 10-13 05:59:40 | lab-01    | on_demand | running    | full    | 4.00  | 0.10 | USD | 10-13 06:00:00 |
10-13 18:00:40 | 10-13 17:59:40 | lab-01    | on_demand | stopped    | storage | 4.00  | 0.10 | USD | 10-13 06:00:00 | 10-13 18:00:00
10-14 06:00:40 | 10-14 05:59:40 | lab-01    | on_demand | running    | full    | 4.00  | 0.10 | USD | 10-14 06:00:00 |
10-14 18:00:40 | 10-14 17:59:40 | lab-01    | on_demand | stopped    | storage | 4.00  | 0.10 | USD | 10-14 06:00:00 | 10-14 18:00:00
10-15 00:00:40 |                | quiet-01  | on_demand | running    | full    | 1.20  |      | USD | 10-15 00:00:00 |
10-15 09:00:00 | 10-15 03:00:00 | quiet-01  | on_demand | running    | full    | 1.40  |      | USD | 10-15 00:00:00 |
10-15 12:00:40 | 10-15 11:59:40 | quiet-01  | on_demand | terminated | none    | 1.40  |      | USD | 10-15 00:00:00 | 10-15 12:00:00
10-20 18:00:40 | 10-20 17:59:40 | lab-01    | on_demand | terminated | none    | 4.00  | 0.10 | USD | 10-14 06:00:00 | 10-20 18:00:00
"""

# Whose machines they are. RunPod and AutoDL charge by the second; AWS too, a minute at least, and disks beside the rate; Vultr by whole hours.
ACCOUNTS = {
    "train-01": "runpod",
    "cn-01": "autodl",
    "spot-01": "aws",
    "burst-01": "vultr",
    "burst-02": "vultr",
    "failed-01": "runpod",
    "secret-01": "runpod",
    "lab-01": "runpod",
    "quiet-01": "runpod",
}

BILL = {
    # The price went up between 11:58 and 12:02 on the 10th: at 12:00. 30 September 22:00 to then: 9 days 14 hours = 230 h x 2.00 = 460.00;
    # from then to 31 October 23:00: 21 days 11 hours = 515 h x 2.50 = 1287.50. Together 745 h: one more than October has elsewhere.
    ("train-01", "compute"): ("USD", "1747.50"),
    # 08:00 to 10:00: 2 h x 0.90 = 1.80; to 13:00: 3 h x 1.10 = 3.30; to 14:30: 1.5 h x 0.80 = 1.20.
    ("spot-01", "compute"): ("USD", "6.30"),
    # 6.5 h x 0.06.
    ("spot-01", "disk_running"): ("USD", "0.39"),
    # 20 min x 3.00 = 1.00, and 40 min up to the whole hour.
    ("burst-01", "compute"): ("USD", "1.00"),
    ("burst-01", "minimum"): ("USD", "2.00"),
    # 2 h 10 min x 3.00 = 6.50, and 50 min up to the third hour.
    ("burst-02", "compute"): ("USD", "6.50"),
    ("burst-02", "minimum"): ("USD", "2.50"),
    # Three times 06:00 to 18:00 at 4.00: 36 h.
    ("lab-01", "compute"): ("USD", "144.00"),
    # Two nights of 12 h and from the 14th 18:00 to the 20th 18:00, 144 h: 168 h x 0.10. Running, the disk is in the rate.
    ("lab-01", "disk_stopped"): ("USD", "16.80"),
    # Nobody read the account from 03:00 to 09:00: the new price counts from 06:00. 6 h x 1.20 = 7.20 and 6 h x 1.40 = 8.40.
    ("quiet-01", "compute"): ("USD", "15.60"),
    # Last listed at 09:58, left out at 10:02: 10 h x 17.50.
    ("cn-01", "compute"): ("CNY", "175.00"),
    # Typed: 500 GB x 0.07 = 35.00 a month of UTC, since 1 September. The last two of September's 720 hours, 0.0972, and 743 of October's
    # 744, 34.9530.
    (None, "network_volume"): ("USD", "35.05"),
    # Refunded by the provider on the 20th.
    (None, "adjustment"): ("USD", "-12.34"),
}
# 1747.50 + 6.30 + 0.39 + 3.00 + 9.00 + 160.80 + 15.60 + 35.05 - 12.34 = 1965.30, and 175.00 CNY x 0.14 = 24.50.
TOTAL = Decimal("1989.80")

# By hand as well, for months of UTC: up to 31 October 23:00, 228 h x 2.00 + 515 h x 2.50; 28 September 00:00 to the end of it, 72 h x 2.00.
TRAIN_BY_MONTH = {"2026-09": "144.00", "2026-10": "1743.50"}


@dataclass(frozen=True)
class Listed:
    machine: str
    values: dict[str, object]


def moment(cell: str) -> datetime | None:
    return datetime.fromisoformat(f"2026-{cell}Z") if cell else None


def decimal(cell: str) -> Decimal | None:
    return Decimal(cell) if cell else None


def listings() -> Iterator[Listed]:
    for line in LISTINGS.strip().splitlines():
        seen, until, machine, market, state, billing, price, disks, currency, started, stopped, *rest = map(
            str.strip, f"{line} |".split("|")
        )
        values: dict[str, object] = {
            "seen_at": moment(seen),
            "unchanged_until": moment(until),
            "market": market,
            "state": state,
            "raw_state": state,
            "billing": billing,
            "price_per_hour": decimal(price),
            "storage_price_per_hour": decimal(disks),
            "currency": currency,
            "provider_started_at": moment(started),
            "provider_stopped_at": moment(stopped),
            "listed": "not listed" not in rest,
            "rule_version": 1,
        }
        yield Listed(machine, values)


@pytest.fixture
def month(acme):
    """The month as it went by: each change is written and built when it was seen."""
    acme.time_zone, acme.currency = "Europe/Berlin", "USD"
    acme.save()
    accounts = {
        kind: ProviderAccount.objects.create(team=acme, kind=kind, name=kind) for kind in sorted(set(ACCOUNTS.values()))
    }
    machines = {
        name: Instance.objects.create(team=acme, account=accounts[kind], external_id=name, name=name)
        for name, kind in ACCOUNTS.items()
    }
    ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=date(2026, 9, 1), rate=Decimal("0.14"))
    volume = NewCharge(
        kind="network_volume",
        name="vol-data",
        unit="gb_month",
        price=Decimal("0.07"),
        quantity=Decimal(500),
        currency="USD",
        starts_at=datetime(2026, 9, 1, tzinfo=UTC),
    )
    actor = Actor.system("test")
    add_charge(actor=actor, team=acme, account=accounts["runpod"], typed=volume, now=datetime(2026, 9, 1, tzinfo=UTC))
    summed = False
    for one in listings():
        row = Observation.objects.create(instance=machines[one.machine], **one.values)
        build_ledger(now=row.seen_at)
        if not summed and row.seen_at > ON_THE_WAY:
            summed = sum_costs(now=ON_THE_WAY).is_complete
    refund = {"at": datetime(2026, 10, 20, 12, tzinfo=UTC), "amount": Decimal("-12.34"), "currency": "USD"}
    Adjustment.objects.create(team=acme, account=accounts["runpod"], kind="refund", reason="Host was down", **refund)
    sum_costs(now=AFTERWARDS)
    return acme


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def names():
    return dict(Instance.objects.values_list("pk", "name"))


def test_every_line_of_the_bill_is_right_to_the_cent(month):
    found = spend(team=month, start=FIRST, end=PAST_LAST, by=[By.MACHINE, By.METER])
    known = names()
    lines = {
        (known.get(machine), str(meter)): (currency, cents(amount))
        for (machine, meter), one in found.rows.items()
        for currency, amount in one.amounts.items()
        if amount
    }
    assert lines == {key: (currency, Decimal(amount)) for key, (currency, amount) in BILL.items()}


def test_the_total_is_right_to_the_cent(month):
    found = spend(team=month, start=FIRST, end=PAST_LAST)
    assert (found.currency, cents(found.all.total)) == ("USD", TOTAL)
    amounts = {currency: cents(amount) for currency, amount in found.all.amounts.items()}
    assert amounts == {"USD": Decimal("1965.30"), "CNY": Decimal("175.00")}
    assert [(rate.currency, rate.rate) for rate in found.rates] == [("CNY", Decimal("0.14"))]


def test_a_price_that_nobody_told_is_time_without_a_price(month):
    """Two hours of secret-01; and the minute of failed-01 of which nobody knew anything costs nothing and is no such time."""
    assert spend(team=month, start=FIRST, end=PAST_LAST).all.unpriced_seconds == 2 * 3600


def test_the_day_on_which_clocks_go_back_has_25_hours(month):
    train = Where(instances=(Instance.objects.get(name="train-01").pk,))
    rows = spend(team=month, start=FIRST, end=PAST_LAST, by=[By.DAY], where=train).rows
    days = {day: cents(one.total) for (day,), one in rows.items()}
    assert days[date(2026, 10, 24)] == Decimal("60.00")
    assert days[date(2026, 10, 25)] == Decimal("62.50")
    # 22:00 to 12:00 at 2.00, then to 22:00 at 2.50.
    assert days[date(2026, 10, 10)] == Decimal("53.00")
    assert len(days) == 31


def test_sums_and_ledger_are_what_they_would_be_made_anew(month):
    assert verify_sums(month) == []
    assert list(rebuild_ledger(instances=sorted(names()), check=True)) == []


def test_the_exported_log_replayed_comes_to_the_same(month, tmp_path):
    found: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for account in ProviderAccount.objects.filter(team=month):
        for line in replayed(account, tmp_path):
            key = (line["machine"].split(" ", 1)[1], line["meter"], line["month"])
            found[key] += cents(Decimal(line["amount"]))
    lines = {key: amount for key, amount in found.items() if amount}
    expected = {
        (machine, meter, "2026-10"): Decimal(amount)
        for (machine, meter), (_currency, amount) in BILL.items()
        if machine not in {None, "train-01"}
    }
    assert lines == expected | {
        ("train-01", "compute", name): Decimal(amount) for name, amount in TRAIN_BY_MONTH.items()
    }


def replayed(account, tmp_path):
    path, out, answer = tmp_path / "log.csv", StringIO(), StringIO()
    call_command("observation_log", "--account", str(account.pk), stdout=out)
    path.write_text(out.getvalue(), newline="")
    until = "2026-10-31T23:00:00Z"
    call_command("ledger_replay", str(path), "--provider", account.kind, "--until", until, "--json", stdout=answer)
    return json.loads(answer.getvalue())["lines"]
