"""A machine's page shows what its provider measured as the provider's word, with its age, and unknown where it says nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.inventory.poll import poll_account
from fleet.inventory.provider_word.models import ProviderReading, ProviderUsage
from fleet.providers.base import Capability
from fleet.providers.errors import Unavailable


@pytest.fixture
def page_of(as_user, vera):
    def get() -> str:
        return str(as_user(vera).get(f"/t/acme/instances/{Instance.objects.get().pk}/").text)

    return get


@pytest.fixture
def machine(lab, provider, listed) -> Instance:
    provider.machines = [listed("i-1")]
    poll_account(account=lab, now=timezone.now())
    return Instance.objects.get()


def test_nothing_where_the_provider_never_measures(machine, page_of):
    assert "Measured by" not in page_of()


def test_figures_are_marked_and_missing_ones_are_unknown(machine, page_of):
    now = timezone.now()
    ProviderUsage.objects.create(instance=machine, slot=now, at=now, gpu_utilization_percent=[97.0, None])
    page = page_of()
    panel = page[page.index("Measured by Scripted") :]
    panel = panel[: panel.index("</section>")]
    assert "97%, ?" in panel
    assert panel.count("unknown") == 7
    assert 'class="age"' in panel
    assert "Only the agent" in panel


def test_an_old_figure_looks_old(machine, page_of):
    then = timezone.now() - timedelta(hours=3)
    ProviderUsage.objects.create(instance=machine, slot=then, at=then, cpu_percent=1.0)
    page = page_of()
    assert 'class="age old"' in page[page.index("Measured by Scripted") :].partition("</header>")[0]


def test_a_provider_that_can_measure_and_has_said_nothing(machine, provider, monkeypatch, page_of):
    monkeypatch.setattr(provider, "capabilities", provider.capabilities | {Capability.METRICS})
    ProviderReading.objects.create(
        account=machine.account, subject="usage", failures=1, error_kind=Unavailable.kind, error_detail="<b>502</b>"
    )
    page = page_of()
    assert "Unknown: the provider has said nothing yet." in page
    assert "&lt;b&gt;502" in page
