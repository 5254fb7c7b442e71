"""static/grafana/rackrent.json as Grafana loads it: ids, places, sources; and it asks for nothing that the page does not give."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest
from django.conf import settings

from fleet.telemetry.giving.names import GPU_NAMES, HOST_NAMES

DASHBOARD = json.loads((settings.BASE_DIR / "static" / "grafana" / "rackrent.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OURS = {
    "DCGM_FI_DEV_XID_ERRORS",
    "rackrent_gpu_state_seconds_total",
    "rackrent_instance_gpus",
    "rackrent_instance_price_per_hour",
    "rackrent_instance_cost_total",
    "rackrent_instance_unpriced_seconds_total",
}


def test_every_panel_has_an_id_of_its_own_and_says_what_it_shows():
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["type"] in {"row", "stat", "timeseries", "table"}
        assert panel["title"]
        assert panel["type"] == "row" or panel["description"]


def test_panels_lie_on_the_grid_and_not_on_each_other():
    squares = {
        panel["title"]: {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        for panel in PANELS
        for place in (panel["gridPos"],)
    }
    assert len(squares) == len(PANELS)
    assert all(0 <= x < 24 for taken in squares.values() for x, _ in taken)
    for one, other in combinations(squares, 2):
        assert not squares[one] & squares[other], (one, other)


def test_the_source_is_chosen_by_the_reader():
    assert VARIABLES["datasource"]["query"] == "prometheus"
    for panel in PANELS:
        for target in panel.get("targets", ()):
            assert target["datasource"] == panel["datasource"] == SOURCE, panel["title"]
        refs = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(refs)) == len(refs)


@pytest.mark.parametrize(
    "panel", [panel for panel in PANELS if panel["type"] != "row"], ids=lambda panel: panel["title"]
)
def test_a_panel_asks_for_what_is_given_and_follows_the_choices(panel):
    given = {name.name for name in (*GPU_NAMES, *HOST_NAMES)} | OURS
    for target in panel["targets"]:
        assert set(re.findall(r"\b(?:DCGM_FI|rackrent)_\w+", target["expr"])) <= given
        used = set(re.findall(r"\$(\w+)", target["expr"]))
        assert {"instance", "provider", "project"} <= used <= set(VARIABLES)
        # Amounts of two currencies are never added.
        assert ("price_per_hour" in target["expr"] or "cost_total" in target["expr"]) == ("currency" in used)
