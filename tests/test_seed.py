from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.providers.registry import adapters

from .seed import seed_fleet


@pytest.mark.django_db
def test_the_pictured_fleet_is_only_where_an_adapter_exists():
    """The screenshots promise nothing that the product cannot do."""
    team = seed_fleet(now=timezone.now(), samples=False)
    assert {machine.account.kind for machine in team.instances.select_related("account")} == {"aws", "manual"}
    assert {"aws", "manual"} <= set(adapters())
