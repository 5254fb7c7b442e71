"""The small steps that adapters of paged JSON APIs share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet.providers import reading
from fleet.providers.errors import InvalidOption, Unavailable
from fleet.providers.reading import await_answer, complete, header_secret, list_of, mapping_of, mib, path_of, utc, whole


@pytest.mark.parametrize("answer", [None, [], "busy", 3, {}, {"droplet": None}, {"droplet": []}])
def test_an_answer_without_its_object_is_unavailable(answer):
    with pytest.raises(Unavailable, match="no droplet"):
        mapping_of(answer, "droplet", "Acme")


@pytest.mark.parametrize("answer", [None, {}, "busy", [1], [{}, None]])
def test_an_answer_that_is_no_list_of_objects_is_unavailable(answer):
    with pytest.raises(Unavailable):
        list_of(answer, "Acme")


def test_an_id_cannot_leave_its_path():
    assert path_of("droplets", "../account", "a?b#c") == "droplets/..%2Faccount/a%3Fb%23c"


def test_fewer_rows_than_were_counted_are_no_listing():
    with pytest.raises(Unavailable, match="counts 3 rows and lists 2"):
        complete(2, 3, "Acme")
    complete(3, 3, "Acme")
    complete(4, 3, "Acme")
    complete(0, None, "Acme")


@pytest.mark.parametrize(
    ("word", "time"),
    [
        ("2026-11-01T08:00:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
        ("2026-11-01 10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
        ("", None),
        (None, None),
    ],
)
def test_a_time_without_a_zone_is_utc_where_that_is_documented(word, time):
    assert utc(word) == time


def test_sizes_are_exact_and_nothing_stays_nothing():
    assert (mib(360.5), mib("80"), mib(None)) == (369_152, 81_920, None)
    assert (whole("176"), whole(None)) == (176, None)


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "a\nb"])
def test_a_key_that_no_header_can_hold_is_refused_by_its_fields_name(key):
    with pytest.raises(InvalidOption) as refused:
        header_secret({"token": key}, "token")
    assert refused.value.field == "token"


def test_waiting_ends_with_the_answer_or_after_its_tries(monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr(reading, "pause", pauses.append)
    answers = iter([None, None, "done"])
    assert await_answer(lambda: next(answers), tries=5, seconds=2.0) == "done"
    assert pauses == [2.0, 2.0]
    assert await_answer(lambda: None, tries=3, seconds=1.0) is None
    assert pauses == [2.0, 2.0, 1.0, 1.0]
