"""Whatever was measured and whatever is offered: a suggestion has room for it and costs less."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.costs.rightsizing.sizing.choosing import right_size
from fleet.costs.rightsizing.sizing.figures import Suggestion
from fleet.providers.base import Market, Tenancy
from fleet.providers.gpus import NAMES
from tests.fleet.costs.rightsizing.machines import DAY, GIB, NOW, machine, offer

prices = st.decimals("0.01", "60", places=4)
shares = st.floats(0, 1)
machines = st.builds(
    machine,
    gpu_model=st.sampled_from(sorted(NAMES)),
    gpus=st.integers(1, 8),
    market=st.sampled_from(list(Market)),
    tenancy=st.sampled_from(list(Tenancy)),
    price_per_hour=prices,
    span_seconds=st.integers(1, 30 * DAY),
    running_seconds=st.integers(0, 30 * DAY),
    coverage=shares,
    peak_memory_bytes=st.floats(0, 200 * GIB),
    working_at_once=st.integers(0, 8),
    utilization_mean=shares,
    utilization_p95=shares,
    serves=st.booleans(),
)
offers = st.lists(
    st.builds(
        offer,
        id=st.integers(1, 99),
        provider=st.sampled_from(["runpod", "lambda"]),
        market=st.sampled_from(list(Market)),
        tenancy=st.sampled_from(list(Tenancy)),
        price_per_hour=prices,
        gpu_model=st.sampled_from(sorted(NAMES)),
        gpus=st.integers(1, 8),
        gpu_memory_bytes=st.integers(1, 300 * GIB),
    ),
    max_size=5,
)


# How long a busy machine takes to make inputs says nothing of them.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(machines, offers)
def test_every_suggestion_holds_the_peak_with_its_margin_and_saves(found, offered):
    verdict = right_size(found, offered, now=NOW)
    if not isinstance(verdict, Suggestion):
        return
    for option in (verdict.best, *verdict.others):
        chosen = option.candidate
        assert chosen.gpu_memory_bytes * 100 >= found.peak_memory_bytes * 114.9999
        assert chosen.gpus >= found.working_at_once
        assert chosen.price_per_hour < found.price_per_hour
        assert option.saving > 0
        assert option.hours_after <= Decimal(730)
        assert not (found.serves and chosen.market == Market.SPOT != found.market)
