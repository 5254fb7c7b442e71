"""Reading the text itself: bad lines cost themselves, and nothing else."""

from __future__ import annotations

import pytest

from fleet.telemetry.scrape import page as pages
from fleet.telemetry.scrape.page import NotMetricsError, parse_page
from fleet.telemetry.scrape.readings import UnusableError
from tests.fleet.telemetry.scrape.pages import Target


def test_only_wanted_names_are_kept():
    page = parse_page('other 1\nnode_load1 2\nnode_load15{a="node_load1"} 3\n', {"node_load1"})
    assert page.series == {"node_load1": [({}, 2.0)]}


def test_a_bad_line_costs_itself():
    page = parse_page("node_load1 oops\nnode_memory_MemTotal_bytes 7\n", {"node_load1", "node_memory_MemTotal_bytes"})
    assert (page.value("node_memory_MemTotal_bytes"), page.value("node_load1"), page.bad_lines) == (7, None, 1)


def test_types_survive_a_bad_line():
    page = parse_page("# TYPE a counter\na 1\na oops\n", {"a"})
    assert (page.kinds, page.points("a")) == ({"a": "counter"}, [({}, 1.0)])


def test_nothing_but_bad_lines_is_no_page():
    with pytest.raises(NotMetricsError):
        parse_page("node_load1 oops\n", {"node_load1"})


def test_far_too_many_series_are_refused(monkeypatch):
    monkeypatch.setattr(pages, "MAX_SERIES", 3)
    with pytest.raises(NotMetricsError):
        parse_page("a 1\n" * 4, {"a"})


@pytest.mark.parametrize("text", ["", "<html>nginx</html>\n", "go_gc_duration_seconds 1\n"])
def test_a_page_of_something_else_is_recognised_as_such(text):
    with pytest.raises(UnusableError) as caught:
        Target("auto").read(text)
    assert caught.value.code == "not_metrics"


def test_a_page_of_another_exporter_than_was_said():
    with pytest.raises(UnusableError):
        Target("dcgm").read("node_load1 2\n")
