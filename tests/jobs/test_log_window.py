"""A log is looked through in both directions, a bounded part at a time, by words and by what complains."""

from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.logs import window
from jobs.logs.part import Part
from jobs.logs.read import line_count
from jobs.logs.screen import LONGEST_SHOWN, on_screen
from jobs.logs.severity import warns
from jobs.logs.store import store_part
from jobs.logs.window import Wanted, lines_after, lines_before
from tests.jobs.conftest import newest

ALL = Wanted()


def numbers(found) -> list[int]:
    return [line.number for line in found.lines]


@pytest.fixture
def node(begin, make_instance):
    return newest(begin("true", make_instance(ssh=[{"host": "198.51.100.7", "port": 22, "user": "root"}]))).nodes.get()


@pytest.fixture
def written(node):
    """Ten lines in five chunks; every third complains."""
    offset = 0
    for first in range(1, 11, 2):
        texts = (f"{'ERROR: no' if number % 3 == 0 else 'step'} {number}\n" for number in (first, first + 1))
        data = "".join(texts).encode()
        store_part(node=node, part=Part(offset, data), at=timezone.now())
        offset += len(data)
    return node


@pytest.mark.django_db
class TestMoving:
    def test_the_end_and_then_what_lies_before_it(self, written):
        found = lines_before(written, ALL, most=3)
        assert (numbers(found), found.more) == ([8, 9, 10], True)
        found = lines_before(written, ALL, before=found.reached, most=6)
        assert (numbers(found), found.more) == ([2, 3, 4, 5, 6, 7], True)
        found = lines_before(written, ALL, before=found.reached, most=6)
        assert (numbers(found), found.more) == ([1], False)

    def test_what_came_after_a_line_and_no_more_than_asked(self, written):
        found = lines_after(written, ALL, after=4, most=3)
        assert (numbers(found), found.reached, found.more) == ([5, 6, 7], 7, True)
        found = lines_after(written, ALL, after=7, most=3)
        assert (numbers(found), found.reached, found.more) == ([8, 9, 10], 10, False)
        assert lines_after(written, ALL, after=10).lines == []

    def test_by_words_and_by_what_complains(self, written):
        assert numbers(lines_before(written, Wanted("STEP 1"))) == [1, 10]
        assert numbers(lines_after(written, Wanted(warnings=True), after=3)) == [6, 9]
        assert numbers(lines_before(written, Wanted("no 6", warnings=True))) == [6]

    def test_a_search_that_finds_nothing_stops_and_says_where(self, written, monkeypatch):
        monkeypatch.setattr(window, "SCAN_BYTES", 30)
        found = lines_before(written, Wanted("nowhere"))
        assert (found.lines, found.more) == ([], True)
        assert 1 < found.reached < 10
        found = lines_after(written, Wanted("nowhere"), after=0)
        assert (found.lines, found.more) == ([], True)
        assert 1 < found.reached < 10

    def test_a_log_of_a_hundred_thousand_lines_is_read_at_its_end_alone(self, node, django_assert_num_queries):
        data = b"".join(b"step %d of a run that prints much\n" % number for number in range(1, 100_001))
        store_part(node=node, part=Part(0, data), at=timezone.now())
        assert (line_count(node), node.chunks.count() > 10) == (100_000, True)
        with django_assert_num_queries(1):
            assert numbers(lines_before(node, ALL, most=200)) == list(range(99_801, 100_001))
        assert numbers(lines_after(node, ALL, after=50_000, most=2)) == [50_001, 50_002]
        assert numbers(lines_before(node, Wanted("step 77777 "))) == [77_777]


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: something",
        "\x1b[33mWARN\x1b[0m slow",
        "RuntimeError: CUDA error: device-side assert triggered",
        "torch.cuda.OutOfMemoryError",
        "Traceback (most recent call last):",
        "E1130 12:00:01.000000 1 main.cc:1] no",
        "NCCL WARN Call to connect failed",
        "Killed",
        "UserWarning: deprecated",
    ],
)
def test_what_complains(text):
    assert warns(text)


@pytest.mark.parametrize(
    "text",
    [
        "step 10 loss 2.1",
        "error=0.02",
        "mean error: 0.1",
        "failed: 0",
        "0 errors",
        "Loading checkpoint shards",
        "eval_error 0.4",
    ],
)
def test_figures_are_no_complaint(text):
    assert not warns(text)


def test_a_page_shows_no_line_as_another():
    assert on_screen("\x1b[2K\x1b[1;31mred\x1b[0m \u202eabc\u2066\x07 a\tb\u3000c") == "red abc a\tb c"
    assert on_screen("\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link") == "textlink"
    assert on_screen("x" * 10_000) == "x" * LONGEST_SHOWN + " …"
    assert on_screen("损失 2.1 🚀") == "损失 2.1 🚀"
