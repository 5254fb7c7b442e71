"""Several machines of one job, in namespaces of their own: how they find each other, and what is said where they do not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.book.models import JobState
from jobs.logs.read import last_lines
from jobs.runner import course
from jobs.runner.bundle import rendezvous_port
from jobs.runner.drive import drive
from tests.jobs.conftest import go_on, newest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

SAY = 'echo "$NODE_RANK of $NNODES at $MASTER_ADDR over $GLOO_SOCKET_IFNAME"; cat hosts; '


def texts(job) -> list[list[str]]:
    return [[line.text for line in last_lines(node)] for node in newest(job).nodes.order_by("rank")]


def test_they_meet_in_their_private_network_and_fail_together(cluster, begin, monkeypatch):
    monkeypatch.setattr(course, "ENDS_ITSELF", timedelta(seconds=1))
    (a, first), (b, second) = cluster("a"), cluster("b")
    job = begin(SAY + "[ $NODE_RANK = 0 ] && exec sleep 600; sleep 0.2; exit 3", a, b)
    go_on(job)
    assert (job.state, job.why) == (JobState.FAILED, "exit")
    nodes = list(newest(job).nodes.order_by("rank"))
    assert [node.exit_code for node in nodes] == [143, 3]
    hosts = [f"{first.private} slots=1", f"{second.private} slots=1"]
    assert texts(job) == [[f"{rank} of 2 at {first.private} over eth1", *hosts] for rank in (0, 1)]
    for node, server in zip(nodes, (first, second), strict=True):
        found = node.facts["network"]
        assert (found["address"], found["interface"], found["to"]) == (server.private, "eth1", 1 - node.rank)
        assert found["gbit_per_second"] > 0


def test_the_page_shows_the_way_between_them(begin, make_instance, as_user, alice):
    place = [{"host": "198.51.100.7", "port": 22, "user": "root"}]
    job = begin("true", *(make_instance(name=name, managed=True, ssh=place) for name in ("node-a", "node-b")))
    page = f"/t/acme/jobs/{job.pk}/"
    assert b"Network between machines" not in as_user(alice).get(page).content
    for node in newest(job).nodes.all():
        way = {"address": f"10.0.0.{node.rank}", "interface": "<b>", "gbit_per_second": 3.5 + node.rank * 90}
        node.facts = {"network": way | {"to": 1 - node.rank, "is_slow": node.rank == 0}}
        node.save()
    text = as_user(alice).get(page).content.decode()
    assert "Network between machines" in text
    assert [part in text for part in ("10.0.0.1", "&lt;b&gt;", "3.50", "93.50", "Below 10 Gbit/s")] == [True] * 5


def test_without_a_private_network_they_meet_where_we_reach_them(cluster, begin):
    (a, first), (b, _second) = cluster("a", private=False), cluster("b", private=False)
    job = go_on(begin(SAY, a, b))
    assert job.state == JobState.SUCCEEDED
    assert texts(job)[1][0] == f"1 of 2 at {first.public} over eth0"


def test_machines_that_do_not_reach_each_other_are_refused_and_the_port_is_named(cluster, begin):
    machines = [cluster(name, private=False, apart=True)[0] for name in ("a", "b")]
    job = go_on(begin("echo never", *machines, retries=2))
    assert (job.state, job.why, job.attempts.count()) == (JobState.FAILED, "no_way", 1)
    said = job.events.filter(kind="no_way").order_by("pk")
    assert {event.values["error"] for event in said} == {"no_way"}
    port = str(rendezvous_port(newest(job)))
    assert all(event.detail.endswith(f": {port}") for event in said)
    assert [event.detail.split(" (")[0] for event in said] == ["b → a", "a → b"]
    assert all(node.launched_at is None for node in newest(job).nodes.all())


def test_a_slow_link_is_said_and_does_not_stop_the_job(cluster, begin):
    (a, first), (b, _second) = cluster("a"), cluster("b")
    first.slow_down("200mbit")
    job = go_on(begin("true", a, b))
    assert job.state == JobState.SUCCEEDED
    slow = newest(job).nodes.get(rank=0).facts["network"]
    assert slow["is_slow"]
    assert 0.05 < slow["gbit_per_second"] < 0.3
    assert job.events.filter(kind="slow_network", node__rank=0).get().detail.startswith("a → b: 0.")


def test_a_machine_is_started_anew_and_the_job_goes_on_from_its_checkpoint(cluster, begin, monkeypatch, tmp_path):
    """The power is cut: no process says a word. Until the machine is up again nobody claims to know; then both run again."""
    monkeypatch.setattr(course, "POLITE", timedelta(seconds=1))
    (a, _first), (b, second) = cluster("a"), cluster("b")
    command = "echo attempt $RACKRENT_ATTEMPT; [ -f saved-$NODE_RANK ] && exec echo went on; touch saved-$NODE_RANK; sleep 600"
    job = begin(f"cd {tmp_path}; {command}", a, b, retries=1)
    go_on(job, until=lambda job: all(node.log_offset for node in newest(job).nodes.all()))
    second.power_off()
    newest(job).__class__.objects.update(next_at=timezone.now())
    drive(attempt_id=newest(job).pk)
    job.refresh_from_db()
    assert (job.state, newest(job).nodes.get(rank=1).error) == (JobState.RUNNING, "unreachable")
    second.start()
    go_on(job)
    first = job.attempts.get(number=1)
    assert (first.state, first.why) == (JobState.LOST, "rebooted")
    assert [node.exit_code for node in first.nodes.order_by("rank")] == [143, None]
    assert (job.state, texts(job)) == (JobState.SUCCEEDED, [["attempt 2", "went on"]] * 2)
