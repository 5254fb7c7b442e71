"""What may take minutes waits in a queue of its own, and holds up nothing that beat sends every few seconds."""

from __future__ import annotations

from config.celery import LONG_QUEUE, LONG_TASKS, OUTSIDE_QUEUE, OUTSIDE_TASKS, app
from config.runtime import programs
from config.runtime.children import Program


def queue_of(name: str) -> str:
    return str(app.amqp.router.route({}, name)["queue"].name)


def queues_read_by(program: Program) -> list[str]:
    (option,) = [word for word in program.command if word.startswith("--queues=")]
    return str(option).removeprefix("--queues=").split(",")


def test_sorting_and_packing_days_have_a_worker_of_their_own():
    for name in ("telemetry.sort_closed_days", "telemetry.pack_old_days"):
        assert queues_read_by(programs.long_worker()) == [queue_of(name)] == [LONG_QUEUE]
    assert LONG_QUEUE not in queues_read_by(programs.worker())


def test_everything_that_beat_sends_more_often_goes_to_the_others():
    """What is sent by an interval must not wait for what runs by night."""
    app.loader.import_default_modules()
    intervals = {one["task"] for one in app.conf.beat_schedule.values() if isinstance(one["schedule"], float)}
    assert {"telemetry.roll_up", "config.pulse", "alerts.evaluate", "inventory.dispatch_polls"} <= intervals
    others = (intervals | set(app.tasks)) - set(LONG_TASKS) - set(OUTSIDE_TASKS)
    assert {queue_of(name) for name in others} == set(queues_read_by(programs.worker()))


def test_what_waits_for_others_servers_has_a_worker_of_its_own():
    assert (
        {queue_of(name) for name in OUTSIDE_TASKS} == {OUTSIDE_QUEUE} == set(queues_read_by(programs.outside_worker()))
    )
    assert queue_of("alerts.evaluate") != OUTSIDE_QUEUE


def test_every_task_that_is_routed_exists():
    app.loader.import_default_modules()
    assert set(LONG_TASKS) | set(OUTSIDE_TASKS) <= set(app.tasks)


def test_both_workers_of_a_host_have_names_of_their_own():
    assert "--hostname=long@%h" in programs.long_worker().command
    assert "--hostname=outside@%h" in programs.outside_worker().command
    assert not [word for word in programs.worker().command if word.startswith("--hostname")]


def test_what_had_to_wait_or_was_cut_short_comes_again_within_the_hour():
    for name in ("telemetry.sort_closed_days", "telemetry.pack_old_days"):
        assert len(app.conf.beat_schedule[name]["schedule"].hour) == 24


def test_operations_and_messages_leave_each_other_places(settings):
    assert settings.OPERATIONS_AT_ONCE >= 2, "an account that hangs has one place, others the rest"
    assert settings.POLLS_AT_ONCE >= 2, "one that hangs leaves a place"
    taken = settings.OPERATIONS_AT_ONCE + settings.CHANNELS_AT_ONCE + settings.POLLS_AT_ONCE
    assert taken <= settings.OUTSIDE_CONCURRENCY
