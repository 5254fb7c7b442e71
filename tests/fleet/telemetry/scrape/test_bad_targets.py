"""Targets that are slow, dead, hostile or something else: each has its reason, and none holds up another."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from fleet.telemetry.models import HostLatest, ScrapeTarget
from fleet.telemetry.scrape import fetch
from fleet.telemetry.scrape.words import FAILURES, failure_text
from tests.fakes.exporter import answer, dripping, endless, only_with, resetting, silent, zipped
from tests.fleet.telemetry.scrape.test_stored import scrape

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = "node_load1 1\n"


@pytest.mark.parametrize(
    ("page", "code", "detail"),
    [
        (silent, "timeout", "0"),
        (dripping, "timeout", "0"),
        (endless, "too_large", "4"),
        (resetting, "broken", "RemoteProtocolError"),
        (zipped(b"#" * (5 << 20)), "too_large", "4"),
        (answer(b"no gzip", Content_Encoding="gzip"), "broken", "gzip"),
        (answer("", status="302 Found", Location="http://127.0.0.1/"), "redirect", "302"),
        (answer("", status="401 Unauthorized"), "token", "401"),
        (answer("", status="503 Service Unavailable"), "status", "503"),
        ("<html>hello</html>", "not_metrics", ""),
        ("DCGM_FI_DEV_GPU_UTIL 1\n", "no_gpus", ""),
        (answer(b"\xff\xfe\x00node_load1"), "not_metrics", ""),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_each_has_its_reason_and_the_others_are_read(make_instance, target_of, impatient, page, code, detail):
    bad = target_of(make_instance(name="bad"), "/bad", page)
    goods = [target_of(make_instance(name=f"good-{n}"), f"/good-{n}", GOOD) for n in range(3)]
    assert sorted(scrape()) == ["", "", "", code]
    bad.refresh_from_db()
    assert (bad.error, bad.error_detail, bad.failures, bad.last_ok_at) == (code, detail, 1, None)
    assert failure_text(bad)
    assert set(HostLatest.objects.values_list("instance_id", flat=True)) == {good.instance_id for good in goods}


def test_nobody_listens(make_instance, target_of):
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    target = target_of(make_instance(), "/x", GOOD)
    ScrapeTarget.objects.update(url=f"http://127.0.0.1:{port}/metrics")
    assert scrape() == ["unreachable"]
    assert failure_text(ScrapeTarget.objects.get(pk=target.pk))


def test_a_port_that_is_none(make_instance, target_of, caplog):
    target_of(make_instance(), "/x", GOOD)
    ScrapeTarget.objects.update(url="http://127.0.0.1:99999/metrics")
    assert scrape() == ["refused_port"]
    assert caplog.records == []


def test_several_failures_to_connect_at_once_are_one():
    async def refused(_request: httpx.Request) -> httpx.Response:
        raise ExceptionGroup("multiple connection attempts failed", [OverflowError("port"), ValueError("address")])

    async def ask() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(refused)) as client:
            await fetch.fetch_page(client, "http://exporter.example:9400/metrics", "")

    with pytest.raises(fetch.FetchError) as failed:
        asyncio.run(ask())
    assert failed.value.code == "unreachable"


def test_https_to_what_speaks_none(make_instance, target_of):
    target_of(make_instance(), "/x", GOOD)
    ScrapeTarget.objects.update(url=ScrapeTarget.objects.get().url.replace("http:", "https:"))
    assert scrape() == ["tls"]


class TestTheGuard:
    def test_a_network_that_the_operator_did_not_allow(self, make_instance, target_of, exporter, settings):
        target_of(make_instance(), "/x", GOOD)
        settings.ALLOWED_NETWORKS = []
        assert scrape() == ["refused_private"]
        assert exporter.asked == []

    def test_a_name_that_leads_inside_and_its_address_is_not_told(self, make_instance, target_of, exporter, settings):
        target_of(make_instance(), "/x", GOOD)
        ScrapeTarget.objects.update(url=f"http://localhost:{exporter.port}/x")
        settings.ALLOWED_NETWORKS = []
        assert scrape() == ["refused_private"]
        assert ScrapeTarget.objects.get().error_detail == "localhost"
        assert exporter.asked == []

    def test_a_redirect_is_not_followed(self, make_instance, target_of, exporter):
        exporter.pages["/elsewhere"] = answer(GOOD)
        target_of(make_instance(), "/x", answer("", status="301 Moved", Location=exporter.url("/elsewhere")))
        assert scrape() == ["redirect"]
        assert [asked[":path"] for asked in exporter.asked] == ["/x"]


def test_a_token_opens_the_page_and_goes_nowhere_else(make_instance, target_of, exporter):
    from fleet.inventory.credentials import seal

    target_of(make_instance(name="a"), "/a", only_with("s3cret", GOOD), token=seal({"token": "s3cret"}))
    target_of(make_instance(name="b"), "/b", GOOD)
    assert scrape() == ["", ""]
    assert {asked[":path"]: asked.get("authorization") for asked in exporter.asked} == {
        "/a": "Bearer s3cret",
        "/b": None,
    }


def test_a_token_that_no_key_opens(make_instance, target_of, settings):
    target_of(make_instance(), "/a", GOOD, token=b"of another key")
    assert scrape() == ["sealed"]


def test_a_failing_target_is_asked_less_and_less_often_and_then_at_once_again(make_instance, target_of, exporter):
    target = target_of(make_instance(), "/a", answer("", status="500 Oops"))
    waits = []
    for _ in range(5):
        scrape()
        target.refresh_from_db()
        assert target.failed_at is not None
        waits.append((target.next_scrape_at - target.failed_at).total_seconds())
    assert target.failures == 5
    assert [60 <= waits[0] <= 66, 120 <= waits[1] <= 132, 300 <= waits[-1] <= 330] == [True] * 3
    exporter.pages["/a"] = answer(GOOD)
    scrape()
    target.refresh_from_db()
    assert (target.failures, target.error) == (0, "")
    assert target.last_ok_at is not None
    assert target.next_scrape_at - target.last_ok_at < timedelta(seconds=35)


def test_a_database_that_refuses_one_page_stores_the_others(make_instance, target_of):
    hostile = "".join(f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-é{n}"}} 1\n' for n in range(2))
    target_of(make_instance(name="bad"), "/bad", hostile)
    target_of(make_instance(name="good"), "/good", GOOD)
    assert sorted(scrape()) == ["", "not_stored"]
    assert HostLatest.objects.count() == 1


def test_every_reason_has_words(make_instance):
    target = ScrapeTarget(
        instance=make_instance(), url="http://203.0.114.7/", error_detail="x", failed_at=timezone.now()
    )
    for code in FAILURES:
        target.error = code
        assert failure_text(target)
        assert "%(" not in failure_text(target)


def test_the_deadline_leaves_room_within_a_claim():
    from fleet.telemetry.scrape.plan import CLAIM

    assert CLAIM.total_seconds() > fetch.DEADLINE_SECONDS * 4
