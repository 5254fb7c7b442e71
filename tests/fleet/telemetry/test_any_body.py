"""No body at all is answered with an error of ours: an agent would keep it and send it for ever."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from fleet.telemetry.wire import Batch, Enrolment, Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = st.sampled_from(["", "\x00", "\ud800", "xid\n", "\u202e", "x" * 96, "x" * 5000]) | st.text(max_size=8)
NUMBERS = (
    st.sampled_from([10**400, -(10**400), 1 << 63, 1 << 64, -1, 1e308, float("nan"), float("inf"), float("-inf")])
    | st.integers()
    | st.floats()
)
ANYTHING: st.SearchStrategy[Any] = st.none() | st.booleans() | TEXTS | NUMBERS | st.just([]) | st.just({})


def values_of(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Values as JSON has them: mostly of this kind, so that they get past the first check, and hostile where they may be."""
    if isinstance(kind, inspect.UnionType):
        return st.one_of([values_of(option) for option in kind.types])
    if isinstance(kind, inspect.StructType):
        return bodies_of(kind.cls)
    if isinstance(kind, inspect.ListType):
        return st.lists(values_of(kind.item_type), max_size=2)
    if isinstance(kind, inspect.DictType):
        return st.dictionaries(TEXTS, values_of(kind.value_type), max_size=2)
    plain = {inspect.StrType: TEXTS | st.sampled_from(["GPU-a", "xid"]), inspect.BoolType: st.booleans()}
    number = NUMBERS | st.builds(time.time)
    return {**plain, inspect.IntType: number, inspect.FloatType: number}.get(type(kind), st.none())


def bodies_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[dict[str, Any]]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    fields = {field.encode_name: values_of(field.type) for field in info.fields}
    good = {"v": st.just(1), "sent_at": st.builds(time.time), "at": st.builds(time.time), "kind": st.just("xid")}
    needed = {name: values | good.get(name, values) for name, values in fields.items() if name in good}
    return st.fixed_dictionaries(needed, optional={n: v for n, v in fields.items() if n not in good})


# Hypothesis warns of bodies that are long to print, which they are meant to be.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize(("path", "kind"), [("samples", Batch), ("heartbeat", Heartbeat), ("enrol", Enrolment)])
async def test_no_body_gives_an_error_of_ours(path, kind, reporter, token_for_async):
    loop = asyncio.get_running_loop()
    if path == "enrol":
        reporter.token = await token_for_async(max_uses=10_000)

    @settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(bodies_of(kind) | st.dictionaries(st.sampled_from(["v", "sent_at", "samples"]), ANYTHING))
    def attempt(body: dict[str, Any]) -> None:
        posted = asyncio.run_coroutine_threadsafe(reporter.post(path, json.dumps(body).encode()), loop)
        answer = posted.result(30)
        assert answer.status_code < 500, answer.text

    await asyncio.to_thread(attempt)


ONE_BAD_VALUE: dict[str, dict[str, Any]] = {
    "a number of 400 digits": {"samples": [{"at": 1.0, "host": {"load1": 10**400, "memory_used_bytes": 10**400}}]},
    "a number of 400 digits for a moment": {"samples": [{"at": 10**400}]},
    "a parent with NUL": {"inventory": [{"uuid": "GPU-a", "mig_parent": "a\x00"}]},
    "half a character as a parent": {"inventory": [{"uuid": "GPU-a", "mig_parent": "\ud800"}]},
}


@pytest.mark.parametrize("fields", ONE_BAD_VALUE.values(), ids=ONE_BAD_VALUE)
async def test_one_bad_value_does_not_hold_the_queue_up(reporter, fields):
    answer = await reporter.samples(**{"samples": [], **fields})
    assert answer.status_code in (200, 422), answer.text


async def test_a_kind_of_event_ends_where_its_line_does(reporter):
    answer = await reporter.samples(events=[{"at": time.time(), "kind": "xid\n"}])
    assert (answer.status_code, answer.json()["field"]) == (422, "events[0].kind")
