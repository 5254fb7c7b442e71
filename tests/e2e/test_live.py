"""Pages move with what machines report: over the socket, by polling where sockets are blocked, and without a hole after a cut."""

from __future__ import annotations

import json
import time
from threading import Event

import pytest
from playwright.sync_api import WebSocketRoute, expect

from .reporting import enrol
from .waiting import connected, figures, until

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def machine(server, make_instance):
    """A machine with two GPUs that reports work."""
    from django.utils import timezone

    from fleet.telemetry.partitions import ensure_partitions

    ensure_partitions(now=timezone.now())
    reporter = enrol(server.url, make_instance(gpus=2, price_per_hour="8.00"))
    reporter.report(utilization_percent=97.0)
    return reporter


def test_a_tile_moves_when_a_sample_arrives(machine, alice, open_context):
    page = open_context(alice).new_page()
    page.goto("/t/acme/")
    tile = page.locator(".tiles .gpu").first
    expect(tile).to_have_attribute("data-s", "working")
    connected(page)
    machine.report(utilization_percent=0.0, process_count=1)
    expect(tile).to_have_attribute("data-s", "held")
    expect(page.locator('.key[data-s="held"] b')).to_have_text("2")
    expect(page.locator('.key[data-s="held"] small')).to_have_text("$8.00/h")
    expect(page.locator(".machine")).to_have_attribute("data-worst", "held")


def test_memory_that_was_not_read_is_not_drawn_as_none(machine, alice, open_context):
    page = open_context(alice).new_page()
    page.goto("/t/acme/")
    tile = page.locator(".tiles .gpu").first
    level = "tile => tile.style.getPropertyValue('--m')"
    assert tile.evaluate(level) == "75"
    connected(page)
    machine.report(utilization_percent=96.0, memory_used_bytes=None)
    expect(tile.locator("b")).to_have_text("96")
    assert tile.evaluate(level) == ""


def test_a_row_and_the_tiles_of_a_machine_move_too(machine, alice, open_context):
    context = open_context(alice)
    page, other = context.new_page(), context.new_page()
    page.goto("/t/acme/instances/")
    other.goto(f"/t/acme/instances/{machine.instance.pk}/")
    connected(page)
    connected(other)
    machine.report(utilization_percent=42.0)
    expect(other.locator(".gpu.big b").first).to_have_text("42%")
    expect(page.locator('[data-cell="busy"]')).to_contain_text("42%")
    machine.report(utilization_percent=0.0, process_count=1)
    expect(page.locator("tbody .badge")).to_have_text("Held idle")


def test_a_chart_grows(machine, alice, open_context):
    page = open_context(alice).new_page()
    page.goto(f"/t/acme/instances/{machine.instance.pk}/")
    connected(page)
    until(page, lambda: bool(figures(page)))
    for value in (11.0, 12.0):
        machine.report(utilization_percent=value)
    until(page, lambda: figures(page)[-2:] == [11, 12])


def test_rates_that_outgrow_their_axis_get_a_larger_unit(machine, alice, open_context):
    page = open_context(alice).new_page()
    machine.report(host={"network_rx_bytes_per_second": 800.0})
    page.goto(f"/t/acme/instances/{machine.instance.pk}/")
    connected(page)
    panel = page.locator('[data-chart-panel="network"]')
    expect(panel.locator(".ytick").last).to_contain_text(" B/s")
    machine.report(host={"network_rx_bytes_per_second": 2e6})
    expect(panel.locator("[data-figure]")).to_have_text("2.00 MB/s in")
    expect(panel.locator(".ytick").last).to_contain_text(" MB/s")
    until(page, lambda: figures(page, "network")[-2:] == pytest.approx([0.0008, 2]))


def test_ages_tick_in_the_language_of_the_page(machine, alice, open_context):
    page = open_context(alice, locale="zh-CN").new_page()
    page.clock.install()
    page.goto("/t/acme/instances/")
    page.clock.fast_forward("02:10")
    expect(page.locator("tbody time.age").first).to_have_text("2 分")


def test_where_sockets_are_blocked_the_page_asks(machine, alice, open_context):
    context = open_context(alice)
    context.route_web_socket("**/ws/live/", lambda socket: socket.close())
    page = context.new_page()
    page.goto("/t/acme/")
    connected(page, "polling")
    machine.report(utilization_percent=0.0, process_count=1)
    expect(page.locator(".tiles .gpu").first).to_have_attribute("data-s", "held", timeout=15_000)


def test_where_sockets_are_swallowed_the_page_asks(machine, alice, open_context):
    """A proxy that lets the socket open and passes nothing on: no error ever comes."""
    context = open_context(alice)
    context.route_web_socket("**/ws/live/", lambda socket: None)
    page = context.new_page()
    page.clock.install()
    page.goto("/t/acme/")
    page.clock.fast_forward("00:11")
    connected(page, "polling")
    machine.report(utilization_percent=0.0, process_count=1)
    expect(page.locator(".tiles .gpu").first).to_have_attribute("data-s", "held", timeout=15_000)


class Cable:
    """A socket's way to the server that the test can pull."""

    def __init__(self) -> None:
        self.pulled = False
        self.sockets: list[WebSocketRoute] = []

    lossy = Event()

    def route(self, socket: WebSocketRoute) -> None:
        if self.pulled:
            socket.close()
            return
        socket.connect_to_server()
        self.sockets.append(socket)

    def pull(self) -> None:
        self.pulled = True
        for socket in self.sockets:
            socket.close()
        self.sockets.clear()


def test_what_was_missed_is_filled_in_after_a_cut(machine, alice, open_context):
    cable = Cable()
    context = open_context(alice)
    context.route_web_socket("**/ws/live/", cable.route)
    page = context.new_page()
    page.goto(f"/t/acme/instances/{machine.instance.pk}/")
    connected(page)
    cable.pull()
    connected(page, "off")
    for seconds_ago in (20, 10):
        machine.report(at=time.time() - seconds_ago, utilization_percent=33.0)
    assert 33 not in figures(page)
    cable.pulled = False
    connected(page)
    until(page, lambda: 33 in figures(page))


def test_what_the_server_could_not_tell_is_read(machine, alice, open_context):
    """Messages that are lost on the way, and then the word that some were."""
    sockets: list[WebSocketRoute] = []
    lossy = Event()

    def route(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        server.on_message(lambda text: None if lossy.is_set() else socket.send(text))
        sockets.append(socket)

    context = open_context(alice)
    context.route_web_socket("**/ws/live/", route)
    page = context.new_page()
    page.goto(f"/t/acme/instances/{machine.instance.pk}/")
    connected(page)
    lossy.set()
    for seconds_ago in (20, 10):
        machine.report(at=time.time() - seconds_ago, utilization_percent=33.0)
    assert 33 not in figures(page)
    sockets[-1].send(json.dumps({"type": "gap", "machine": machine.instance.pk, "at": time.time()}))
    until(page, lambda: 33 in figures(page), seconds=30)


def test_a_signed_out_reader_hears_nothing_more(machine, alice, open_context):
    from fleet.teams.sessions import end_sessions

    page = open_context(alice).new_page()
    page.goto("/t/acme/")
    connected(page)
    end_sessions(user=alice)
    # Its socket is refused, or whatever it asks for next has led to the page of signing in.
    expect(page.locator("body[data-live-mode=off], body.gate")).to_be_visible(timeout=20_000)


def test_a_hung_driver_turns_tiles_unknown_while_the_machine_reports_on(machine, alice, open_context):
    context = open_context(alice)
    addresses = ("", "instances/", f"instances/{machine.instance.pk}/")
    overview, rows, one = pages = [context.new_page() for _address in addresses]
    for page, address in zip(pages, addresses, strict=True):
        page.clock.install()
        page.goto(f"/t/acme/{address}")
        connected(page)
        page.clock.fast_forward("00:40")
    machine.report_host(host={"cpu_percent": 55.0}, at=time.time() + 40)
    until(one, lambda: figures(one, "cpu")[-1:] == [55])
    for page in pages:
        page.clock.run_for(6000)
    expect(overview.locator(".tiles .gpu").first).to_have_attribute("data-s", "unknown")
    expect(rows.locator("tbody .badge")).to_have_text("Unknown")
    expect(rows.locator('[data-cell="busy"]')).to_have_text("unknown")
    expect(one.locator(".gpu.big b").first).to_have_text("?")
    expect(one.locator('[data-chart-panel="busy"] time.age')).to_have_class("age old")
    expect(one.locator('[data-chart-panel="cpu"] time.age')).to_have_class("age")


def test_silence_turns_tiles_unknown_without_a_reload(machine, alice, open_context):
    context = open_context(alice)
    page = context.new_page()
    page.clock.install()
    page.goto("/t/acme/")
    connected(page)
    page.clock.fast_forward("00:45")
    expect(page.locator(".tiles .gpu").first).to_have_attribute("data-s", "unknown")
    expect(page.locator(".machine")).to_have_attribute("data-worst", "unknown")
