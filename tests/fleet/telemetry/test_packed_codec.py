"""Packed hours: what was packed is read back within the precision that is documented, and packing it again changes nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.telemetry.packed.codec import (
    CHUNK_BYTES,
    MOST_INLINE_BYTES,
    VERSION,
    PackedError,
    pack_hour,
    split_payload,
    unpack_hour,
)
from fleet.telemetry.packed.fields import GPU_FIELDS, HOST_FIELDS, Decimals, Digits, Exact, Field
from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS

FIELDS = {
    "sampled_at": Field(0),
    "bytes": Field(1),
    "watts": Field(2, Decimals(1)),
    "rate": Field(3, Digits(3)),
    "devices": Field(4, None),
}
any_float = st.floats(allow_nan=False)
any_row = st.tuples(
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), any_float),
    st.one_of(st.none(), any_float),
    st.one_of(st.none(), st.text(max_size=20)),
)


def hour(rows) -> dict[str, list[Any]]:
    moments = [1_900_000_000_000_000 + 5_000_123 * number for number in range(len(rows))]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return {
        "sampled_at": moments,
        **{name: list(column) for name, column in zip(list(FIELDS)[1:], columns, strict=True)},
    }


@given(st.lists(any_row, max_size=60))
def test_whole_numbers_and_texts_come_back_as_they_were_and_the_rest_within_its_precision(rows):
    packed = hour(rows)
    found = unpack_hour(pack_hour(packed, FIELDS), FIELDS)
    for name in ("sampled_at", "bytes", "devices"):
        assert list(found[name]) == packed[name]
    for before, after in zip(packed["watts"], found["watts"], strict=True):
        assert before == after or (before is not None and abs(before - after) <= 0.05 + 1e-9 * abs(before))
    for before, after in zip(packed["rate"], found["rate"], strict=True):
        assert before == after or (before is not None and abs(before - after) <= max(0.005001 * abs(before), 1e-12))


@given(st.lists(any_row, max_size=40))
def test_packing_again_changes_nothing(rows):
    once = unpack_hour(pack_hour(hour(rows), FIELDS), FIELDS)
    again = unpack_hour(pack_hour(once, FIELDS), FIELDS)
    assert {name: list(column) for name, column in again.items()} == {
        name: list(column) for name, column in once.items()
    }


def test_each_reading_has_its_own_precision():
    assert Exact().wholes([3.0, 4]) == [3, 4]
    assert Decimals(1).values(Decimals(1).wholes([349.96, -0.04])) == [350.0, 0.0]
    rates = [0.0, 1.0, 12_345_678.0, -9_994.0, 0.000123456, 999.5]
    assert Digits(3).values(Digits(3).wholes(rates)) == [0.0, 1.0, 12_300_000.0, -9_990.0, 0.000123, 1_000.0]


def test_numbers_of_rates_are_in_the_order_of_the_rates():
    rates = [-5e9, -1.0, 0.0, 1e-9, 0.5, 9.99, 10.0, 999.0, 1e12]
    assert Digits(3).wholes(rates) == sorted(Digits(3).wholes(rates))


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, math.nan])
def test_what_no_whole_number_stands_for_is_kept_as_it_is(value):
    found = unpack_hour(pack_hour({"sampled_at": [1, 2], "watts": [value, None]}, FIELDS), FIELDS)["watts"]
    assert repr(found) == repr([value, None])


def test_an_hour_without_samples_is_one_too():
    assert unpack_hour(pack_hour({"sampled_at": []}, FIELDS), FIELDS)["watts"] == []


def test_only_what_is_asked_for_is_unpacked():
    payload = pack_hour({"sampled_at": [1, 2], "watts": [1.0, 2.0], "bytes": [None, 7]}, FIELDS)
    assert unpack_hour(payload, FIELDS, ["bytes", "rate"]) == {"bytes": [None, 7], "rate": [None, None]}


def test_a_reading_without_a_field_is_refused_by_name():
    with pytest.raises(PackedError, match="fan_percent: packed hours have no field"):
        pack_hour({"fan_percent": [1.0]}, FIELDS)


@pytest.mark.parametrize("size", [0, 1, 1_900, 1_901, 1_996, 3_000, 3_991, 3_992, 3_993, 9_000])
def test_what_does_not_fit_into_a_row_is_moved_out_in_whole_chunks(size):
    payload = bytes(number % 251 for number in range(size))
    inline, moved = split_payload(payload)
    assert inline + moved == payload
    assert len(inline) <= MOST_INLINE_BYTES
    assert len(moved) % CHUNK_BYTES == 0 or not inline


def test_a_version_of_the_future_is_refused():
    with pytest.raises(PackedError, match="version 2"):
        unpack_hour(bytes([VERSION + 1]) + b"what", FIELDS)


def test_every_reading_has_its_field_and_every_field_its_code():
    assert set(GPU_FIELDS) == {"sampled_at", "state", *GPU_COLUMNS}
    assert set(HOST_FIELDS) == {"sampled_at", "devices", *HOST_COLUMNS}
    for fields in (GPU_FIELDS, HOST_FIELDS):
        assert len({field.code for field in fields.values()}) == len(fields)
