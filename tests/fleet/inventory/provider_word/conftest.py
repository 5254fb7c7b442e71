from __future__ import annotations

import pytest

from fleet.providers.base import ProviderUsage, Ref


@pytest.fixture
def measured():
    """measured("i-1", cpu_percent=3.0) is what a provider says of that machine of eu-1."""

    def make(ref: str = "i-1", **figures: object) -> ProviderUsage:
        return ProviderUsage(ref=Ref(ref, "eu-1"), **figures)  # type: ignore[arg-type]

    return make
