"""The pages of offers: the address is the search, what is found says why, lists are previewed before they are kept."""

from __future__ import annotations

from datetime import date, timedelta
from urllib.parse import parse_qsl

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.inventory.offers.models import Offer, OfferSource, ProviderScore, ScoreKind, SourceKind
from fleet.inventory.offers.table import lay_out_table
from tests.fleet.inventory.conftest import NOON
from tests.fleet.inventory.offers.test_sheet import GPUHUNT

OFFERS = "/t/acme/offers/"
LISTS = "/t/acme/offers/lists/"
GOOD = GPUHUNT + "big,eu-1,2.49,16,64,1,L4,24,False,\n"


@pytest.fixture
def client(bob, as_user):
    return as_user(bob)


def typed(**changed):
    return {"name": "Prices", "provider": "lambda", "priced_on": "2026-11-01", "csv": GOOD, **changed}


def test_a_search_is_its_address_and_the_address_is_short(client, offer):
    offer("four", gpu_count=4)
    offer("one")
    answer = client.get(OFFERS, {"gpus": "4", "gpu": "", "unknown": "keep", "sort": "score", "region": " "})
    assert (answer.status_code, answer.headers["Location"]) == (302, "?gpus=4")
    page = client.get(OFFERS, {"gpus": "4"})
    assert [line.offer.key for line in page.context["lines"]] == ["four"]
    assert "4 of its 4 GPUs are asked for" in page.text


def test_an_offer_says_its_price_its_age_and_what_it_lacks(client, offer):
    offer("big", price="8", gpu_count=4, vcpus=4, priced_on=timezone.localdate() - timedelta(days=100), origin="a list")
    text = client.get(OFFERS).text
    assert "$8.00" in text
    assert "$2.00 a GPU" in text
    assert ">100 d<" in text
    assert "from: a list" in text
    assert "4 vCPUs: under 8 the GPU waits for its data" in text
    assert "main memory is not told" in text


def test_what_is_not_known_is_hatched_and_never_zero(client, offer):
    offer("bare", price=None, gpu_model="", gpu_count=None, gpu_memory_mib=None)
    text = client.get(OFFERS).text
    assert text.count('class="unk"') >= 4
    assert "$0.00" not in text.split('id="found"')[1]


def test_what_an_offer_does_not_tell_is_counted_before_it_is_unfolded(client, offer):
    offer("silent")
    page = client.get(OFFERS)
    (line,) = page.context["lines"]
    assert line.untold > 0
    assert (
        f'<span class="tag">{line.untold} not told</span>'
        in page.text.partition('<details class="behind">')[2].partition("</summary>")[0]
    )


def test_a_hostile_name_is_escaped(client, offer):
    offer("x", instance_type="<script>alert(1)</script>", origin='"><u>', region="<i>eu</i>")
    text = client.get(OFFERS).text
    assert "<script>alert" not in text
    assert "<i>eu</i>" not in text
    assert '"><u>' not in text


def test_a_wrong_search_is_told_at_its_field_and_keeps_what_was_typed(client, offer):
    offer("a")
    page = client.get(OFFERS, {"gpus": "many", "gpu": "H100"})
    assert page.status_code == 422
    assert "Enter a whole number" in page.text
    assert 'value="many"' in page.text
    assert 'value="H100"' in page.text


def test_currencies_are_said_to_be_apart(client, offer):
    offer("dollars")
    assert "are not compared" not in client.get(OFFERS).text
    offer("yuan", currency="CNY")
    assert "Prices in CNY, USD are not compared with each other." in client.get(OFFERS).text


def test_a_list_that_fails_is_named_with_the_age_of_what_is_shown(client, acme, lab):
    OfferSource.objects.create(
        team=acme, kind=SourceKind.LIVE, name="Lab", account=lab, failures=2, read_at=NOON, error_detail="refused"
    )
    assert "The offers of Lab could not be read." in client.get(OFFERS).text
    assert "refused" in client.get(LISTS).text


def test_a_page_costs_the_same_queries_for_any_number_of_offers(client, acme, offer, prices):
    def queries():
        with CaptureQueriesContext(connection) as counted:
            assert client.get(OFFERS, {"gpu": "H100", "gpus": "1"}).status_code == 200
        return len(counted)

    offer("first")
    queries()
    few = queries()
    lay_out_table(acme, now=NOON)
    Offer.objects.bulk_create(
        Offer(source=prices, key=f"more-{number}", provider=f"p{number % 9}", gpu_model="H100 SXM", currency="USD", seen_at=NOON)
        for number in range(500)
    )  # fmt: skip
    assert queries() == few
    # Badges of the rail among them.
    assert few <= 16


def test_offers_are_walked_page_by_page_in_one_order(client, prices):
    Offer.objects.bulk_create(
        Offer(source=prices, key=f"{number:03}", provider="lambda", price_per_hour=number, currency="USD", seen_at=NOON)
        for number in range(120)
    )
    seen = []
    for number in ("1", "2", "3"):
        page = client.get(OFFERS, {"sort": "price", "page": number})
        seen += [line.offer.key for line in page.context["lines"]]
    assert seen == sorted(seen)
    assert len(set(seen)) == 120


def test_two_to_four_offers_stand_side_by_side(client, offer):
    a, b = offer("a", vcpus=16, ram_mib=65_536), offer("b", vcpus=32, ram_mib=65_536)
    page = client.get(f"{OFFERS}compare/", {"id": [a.pk, b.pk], "gpus": "1"})
    rows = {row.label: row for row in page.context["rows"]}
    assert sorted(rows["vCPUs"].cells) == ["16", "32"]
    assert rows["vCPUs"].differs
    assert not rows["Main memory"].differs
    assert rows["Disk"].cells == ["", ""]
    assert 'href="/t/acme/offers/?gpus=1"' in page.text


def test_how_machines_fared_stands_beside_what_offers_say(client, acme, offer):
    ProviderScore.objects.create(team=acme, provider="lambda", kind=ScoreKind.HEALTH, value=4)
    a, b = offer("a"), offer("b", provider="runpod")
    page = client.get(f"{OFFERS}compare/", {"id": [a.pk, b.pk]})
    row = next(row for row in page.context["rows"] if row.label == "Health of machines")
    assert (sorted(row.cells), row.differs) == (["", "4 of 5"], True)


@pytest.mark.parametrize("ids", [["1"], ["x", "y"], ["9" * 30, "1"]])
def test_fewer_than_two_are_not_compared(client, offer, ids):
    page = client.get(f"{OFFERS}compare/", {"id": ids})
    assert page.status_code == 422
    assert "Choose two to four offers" in page.text


def test_nothing_chosen_says_how_to_choose(client):
    page = client.get(f"{OFFERS}compare/")
    assert page.status_code == 200
    assert "Choose two to four offers" in page.text


def test_more_than_four_and_others_offers_are_not_compared(client, offer, rival):
    many = [offer(f"o{number}").pk for number in range(5)]
    assert client.get(f"{OFFERS}compare/", {"id": many}).status_code == 422
    theirs = OfferSource.objects.create(team=rival, kind=SourceKind.IMPORT, name="Prices")
    foreign = offer("theirs", source=theirs)
    assert client.get(f"{OFFERS}compare/", {"id": [many[0], foreign.pk]}).status_code == 422


def test_a_list_is_shown_first_and_kept_when_asked(client):
    page = client.post(LISTS, typed(step="preview"))
    assert "Import 1 offer" in page.text
    assert "columns of gpuhunt" in page.text
    assert not Offer.objects.exists()
    answer = client.post(LISTS, typed(step="import"))
    assert answer.status_code == 302
    assert Offer.objects.get().priced_on == date(2026, 11, 1)


def test_the_day_of_a_list_is_a_browsers_day_in_every_language(client):
    text = client.get(LISTS, headers={"Accept-Language": "zh-hans"}).text
    assert f'value="{timezone.localdate():%Y-%m-%d}"' in text


def test_a_file_stands_in_the_form_after_its_preview(client):
    upload = SimpleUploadedFile("november.csv", GOOD.encode())
    page = client.post(LISTS, {**typed(step="preview", csv=""), "file": upload})
    assert page.context["form"]["csv"].value() == GOOD
    assert "Import 1 offer" in page.text


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"csv": GPUHUNT + "big,eu,free,1,1,1,L4,24,False,\n"}, "“free” is no number from 0."),
        ({"csv": ""}, "Choose a file, or paste its text."),
        ({"priced_on": "2999-01-01"}, "This day is still to come."),
        ({"currency": "$$$"}, "Write three letters"),
        ({"file": SimpleUploadedFile("x.csv", b"\xff\xfe\x00")}, "no text in UTF-8"),
    ],
)
def test_a_list_that_cannot_be_kept_says_why_and_loses_nothing(client, changed, text):
    page = client.post(LISTS, typed(step="import", **changed))
    assert page.status_code == 422
    assert text in page.text
    assert 'value="Prices"' in page.text
    assert not Offer.objects.exists()


def test_an_imported_list_can_be_removed_and_others_cannot(client, acme, prices):
    lay_out_table(acme, now=NOON)
    table = OfferSource.objects.get(kind=SourceKind.TABLE)
    assert client.post(f"{LISTS}{table.pk}/remove/").status_code == 404
    assert client.post(f"{LISTS}{prices.pk}/remove/").status_code == 302
    assert not OfferSource.objects.filter(pk=prices.pk).exists()


def test_support_is_rated_and_dropped(client, bob):
    assert (
        client.post("/t/acme/offers/ratings/", {"provider": "Lambda", "stars": "4", "note": "quick"}).status_code == 302
    )
    score = ProviderScore.objects.get()
    assert (score.provider, score.value, score.by) == ("lambda", 4, bob)
    assert "quick" in client.get(LISTS).text
    client.post(f"/t/acme/offers/ratings/{score.pk}/drop/")
    assert not ProviderScore.objects.exists()


def test_a_rating_beyond_five_is_refused(client):
    answer = client.post("/t/acme/offers/ratings/", {"provider": "lambda", "stars": "6"})
    assert answer.status_code == 422
    assert not ProviderScore.objects.exists()


def test_viewers_see_and_change_nothing(vera, as_user, prices):
    client = as_user(vera)
    assert client.get(OFFERS).status_code == 200
    assert "Import a list" not in client.get(LISTS).text
    for address in (LISTS, f"{LISTS}{prices.pk}/remove/", "/t/acme/offers/ratings/"):
        assert client.post(address, typed(step="import")).status_code == 403


def test_charlie_sees_none_of_it(charlie, as_user, prices):
    client = as_user(charlie)
    assert client.get(OFFERS).status_code == 404
    assert client.post(f"/t/rival/offers/lists/{prices.pk}/remove/").status_code == 404


def test_a_plan_leads_to_offers_for_it(client):
    text = client.get("/t/acme/planner/", follow=True).text
    links = [part.split('"')[0] for part in text.split('href="/t/acme/offers/?')[1:]]
    assert links
    asked = dict(parse_qsl(links[0].replace("&amp;", "&")))
    assert asked["gpu"]
    assert int(asked["gpus"]) >= 1
    assert client.get(OFFERS, asked).status_code == 200
