"""Whose a GPU is while processes are on it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.costs.attribution.use import users_of


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ([], {}),
        ([{"user": "ada", "memory_bytes": 5}], {"ada": 1}),
        ([{"user": "ada", "memory_bytes": 30}, {"user": "bob", "memory_bytes": 10}], {"ada": 0.75, "bob": 0.25}),
        ([{"user": "ada", "memory_bytes": 30}, {"memory_bytes": 10}], {"ada": 0.75, "": 0.25}),
        # Of one process the memory is not told: two processes of ada are one user all the same.
        ([{"user": "ada", "memory_bytes": 30}, {"user": "ada", "memory_bytes": 30}, {"user": "bob"}], {"ada": 0.5, "bob": 0.5}),
        ([{"user": "ada", "memory_bytes": 0}, {"user": "bob", "memory_bytes": 0}], {"ada": 0.5, "bob": 0.5}),
    ],
)  # fmt: skip
def test_users_of_one_gpu(processes, expected):
    assert users_of(processes) == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {}, optional={"user": st.sampled_from(["", "ada", "bob"]), "memory_bytes": st.integers(0, 2**45)}
        ),
        max_size=8,
    )
)
def test_parts_of_a_gpu_make_one(processes):
    parts = users_of(processes)
    assert all(part > 0 for part in parts.values())
    assert not processes or abs(sum(parts.values()) - 1) < 1e-9
