"""A role counts in the team of the row, also for whoever has a higher one elsewhere."""

from __future__ import annotations

import pytest
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from fleet.inventory.api.machines import GPUViewSet, InstanceViewSet
from fleet.teams.models import Membership, Role
from fleet.teams.permissions import HasRole


@pytest.fixture
def allowed(fleet):
    def ask(user, method, view, row):
        request = Request(getattr(APIRequestFactory(), method)("/"))
        request.user, request.auth = user, None
        return HasRole().has_object_permission(request, view(), row)

    return ask


def test_an_operator_elsewhere_only_reads_here(fleet, vera, rival, allowed):
    Membership.objects.create(team=rival, user=vera, role=Role.OPERATOR)
    for view, row in ((InstanceViewSet, fleet.instance), (GPUViewSet, fleet.gpus[0])):
        assert allowed(vera, "get", view, row)
        assert not allowed(vera, "post", view, row)


def test_an_operator_here_may_write(fleet, bob, allowed):
    assert allowed(bob, "post", InstanceViewSet, fleet.instance)


def test_another_team_may_nothing(fleet, charlie, allowed):
    assert not allowed(charlie, "get", InstanceViewSet, fleet.instance)
