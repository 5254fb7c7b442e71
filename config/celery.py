"""The Celery application. Each slice's tasks.py is found by name; the beat schedule is code, below."""

from __future__ import annotations

import os

from celery import Celery
from celery.schedules import crontab

from config import task_meters  # noqa: F401  # listens to what tasks do

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("rackrent")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        "config",
        "fleet.teams",
        "fleet.costs.bills",
        "fleet.inventory",
        "fleet.inventory.offers",
        "fleet.inventory.operations",
        "fleet.inventory.provider_word",
        "fleet.telemetry",
        "fleet.alerts",
        "fleet.alerts.channels",
        "fleet.costs.balances",
        "fleet.costs.budgets",
        "fleet.costs.attribution",
        "fleet.costs.anomalies",
        "fleet.costs.forecast",
        "fleet.costs.book",
        "fleet.costs.rightsizing",
        "fleet.costs.exports",
        "fleet.costs.reports",
        "fleet.costs.spend",
        "fleet.quality.health",
        "fleet.quality.acceptance",
        "fleet.quality.neighbours",
        "fleet.idle.dryrun",
        "fleet.idle.planned",
        "fleet.idle.watch",
        "jobs.findings",
        "jobs.learning",
        "jobs.loadtest",
        "jobs.runner",
        "jobs.serving",
        "jobs.spending",
        "jobs.uploads",
        "fleet.idle.hooks",
        "fleet.idle.shutdown",
    ]
)

# What may take minutes has a worker of its own: it must not hold up what beat sends every few seconds.
LONG_QUEUE = "long"
LONG_TASKS = (
    "jobs.examine_running",
    "costs.prune_balances",
    "costs.compare_bills",
    "telemetry.sort_closed_days",
    "telemetry.pack_old_days",
    "telemetry.prune_records",
    "inventory.prune_observations",
    "inventory.prune_usage",
    "alerts.prune",
    "alerts.prune_channels",
    "costs.sum_backlog",
    "teams.prune",
    "costs.keep_forecasts",
    "costs.right_size",
    "quality.count_health",
    "quality.judge_neighbours",
    "quality.prune_health",
    "quality.prune_neighbours",
    "idle.read_history",
    "idle.recommend",
    "idle.reckon_floors",
    "jobs.prune_probes",
    "jobs.run_load_test",
    "jobs.prune_uploads",
)
# What waits for somebody else's server, one call after the other: those that hang must not hold up what looks at the fleet.
OUTSIDE_QUEUE = "outside"
OUTSIDE_TASKS = (
    "alerts.send_channel",
    "costs.send_reports",
    "idle.run_hook",
    "inventory.drive_operation",
    "inventory.poll",
    "inventory.read_word",
    "inventory.refresh_offers",
    "jobs.drive_attempt",
    "jobs.look_at_server",
)
QUEUES = {LONG_QUEUE: LONG_TASKS, OUTSIDE_QUEUE: OUTSIDE_TASKS}
app.conf.task_routes = {name: {"queue": queue} for queue, names in QUEUES.items() for name in names}

# A run that is late by its whole interval is worth nothing: `expires` drops it instead of letting a backlog grow.
app.conf.beat_schedule = {
    "costs.compare_recent_bills": {"task": "costs.compare_recent_bills", "schedule": crontab(minute="37")},
    "costs.prune_bill_uploads": {"task": "costs.prune_bill_uploads", "schedule": crontab(hour="3", minute="47")},
    "alerts.evaluate": {"task": "alerts.evaluate", "schedule": 10.0, "options": {"expires": 10}},
    "alerts.prune": {"task": "alerts.prune", "schedule": crontab(hour="3", minute="53")},
    "telemetry.prune_records": {"task": "telemetry.prune_records", "schedule": crontab(hour="3", minute="41")},
    "telemetry.dispatch_scrapes": {"task": "telemetry.dispatch_scrapes", "schedule": 5.0, "options": {"expires": 5}},
    "telemetry.dispatch_sources": {"task": "telemetry.dispatch_sources", "schedule": 5.0, "options": {"expires": 5}},
    "telemetry.keep_partitions": {"task": "telemetry.keep_partitions", "schedule": crontab(minute="23")},
    "telemetry.expire_actions": {"task": "telemetry.expire_actions", "schedule": 15.0, "options": {"expires": 15}},
    "telemetry.roll_up": {"task": "telemetry.roll_up", "schedule": 60.0, "options": {"expires": 60}},
    # Once a day there is something to do, after the last samples of yesterday that came on time. Readers may have kept it busy an hour ago.
    "telemetry.sort_closed_days": {
        "task": "telemetry.sort_closed_days",
        "schedule": crontab(minute="19"),
        "options": {"expires": 3_000},
    },
    # Nothing to do while RAW_HISTORY_DAYS is 0.
    "telemetry.pack_old_days": {
        "task": "telemetry.pack_old_days",
        "schedule": crontab(minute="29"),
        "options": {"expires": 3_000},
    },
    "alerts.dispatch_channels": {"task": "alerts.dispatch_channels", "schedule": 5.0, "options": {"expires": 5}},
    "alerts.prune_channels": {"task": "alerts.prune_channels", "schedule": crontab(hour="3", minute="53")},
    "alerts.sync_calendar": {"task": "alerts.sync_calendar", "schedule": 300.0, "options": {"expires": 300}},
    "costs.attribute": {"task": "costs.attribute", "schedule": 60.0, "options": {"expires": 60}},
    "costs.sum_days": {"task": "costs.sum_days", "schedule": 300.0, "options": {"expires": 300}},
    "costs.judge_balances": {"task": "costs.judge_balances", "schedule": 300.0, "options": {"expires": 300}},
    "costs.prune_balances": {"task": "costs.prune_balances", "schedule": crontab(hour="3", minute="47")},
    "costs.judge_budgets": {"task": "costs.judge_budgets", "schedule": 300.0, "options": {"expires": 300}},
    "pulse": {"task": "config.pulse", "schedule": 10.0, "options": {"expires": 10}},
    "inventory.dispatch_polls": {"task": "inventory.dispatch_polls", "schedule": 5.0, "options": {"expires": 5}},
    "inventory.dispatch_offers": {"task": "inventory.dispatch_offers", "schedule": 30.0, "options": {"expires": 30}},
    "inventory.dispatch_readings": {
        "task": "inventory.dispatch_readings",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "inventory.prune_usage": {"task": "inventory.prune_usage", "schedule": crontab(hour="3", minute="29")},
    "inventory.dispatch_operations": {
        "task": "inventory.dispatch_operations",
        "schedule": 3.0,
        "options": {"expires": 3},
    },
    "inventory.sweep_operations": {"task": "inventory.sweep_operations", "schedule": 30.0, "options": {"expires": 30}},
    "idle.carry_out_planned": {"task": "idle.carry_out_planned", "schedule": 15.0, "options": {"expires": 15}},
    "idle.plan_ends": {"task": "idle.plan_ends", "schedule": 60.0, "options": {"expires": 60}},
    "inventory.prune_observations": {
        "task": "inventory.prune_observations",
        "schedule": crontab(hour="3", minute="17"),
    },
    "costs.watch_money": {"task": "costs.watch_money", "schedule": 600.0, "options": {"expires": 600}},
    # Days end at another hour in every time zone.
    "costs.keep_forecasts": {
        "task": "costs.keep_forecasts",
        "schedule": crontab(minute="11"),
        "options": {"expires": 3_000},
    },
    "costs.right_size": {"task": "costs.right_size", "schedule": crontab(hour="4", minute="7")},
    # Eight in the morning of every time zone: some are a quarter of an hour off.
    "costs.send_reports": {"task": "costs.send_reports", "schedule": 300.0, "options": {"expires": 300}},
    "costs.count": {"task": "costs.count", "schedule": 300.0, "options": {"expires": 300}},
    "costs.build_ledger": {"task": "costs.build_ledger", "schedule": 60.0, "options": {"expires": 60}},
    # After the hour is rolled up.
    "quality.accept": {"task": "quality.accept", "schedule": 60.0, "options": {"expires": 60}},
    "quality.judge_neighbours": {
        "task": "quality.judge_neighbours",
        "schedule": crontab(minute="9"),
        "options": {"expires": 3_000},
    },
    "quality.count_health": {
        "task": "quality.count_health",
        "schedule": crontab(minute="14"),
        "options": {"expires": 3_000},
    },
    "quality.prune_health": {"task": "quality.prune_health", "schedule": crontab(hour="3", minute="33")},
    "quality.prune_neighbours": {"task": "quality.prune_neighbours", "schedule": crontab(hour="3", minute="31")},
    "idle.recommend": {"task": "idle.recommend", "schedule": crontab(hour="4", minute="37")},
    "idle.judge": {"task": "idle.judge", "schedule": 60.0, "options": {"expires": 60}},
    "idle.reckon_floors": {
        "task": "idle.reckon_floors",
        "schedule": crontab(minute="13"),
        "options": {"expires": 3_000},
    },
    "jobs.learn": {"task": "jobs.learn", "schedule": 60.0, "options": {"expires": 60}},
    "jobs.watch_budgets": {"task": "jobs.watch_budgets", "schedule": 60.0, "options": {"expires": 60}},
    "jobs.examine_running": {"task": "jobs.examine_running", "schedule": 60.0, "options": {"expires": 60}},
    "jobs.tell_of_jobs": {"task": "jobs.tell_of_jobs", "schedule": 30.0, "options": {"expires": 30}},
    "jobs.watch_load_tests": {"task": "jobs.watch_load_tests", "schedule": 60.0, "options": {"expires": 60}},
    "jobs.dispatch_attempts": {"task": "jobs.dispatch_attempts", "schedule": 2.0, "options": {"expires": 2}},
    "jobs.dispatch_looks": {"task": "jobs.dispatch_looks", "schedule": 5.0, "options": {"expires": 5}},
    "jobs.prune_uploads": {"task": "jobs.prune_uploads", "schedule": crontab(hour="4", minute="19")},
    "jobs.prune_probes": {"task": "jobs.prune_probes", "schedule": crontab(hour="4", minute="11")},
    "idle.drive": {"task": "idle.drive", "schedule": 15.0, "options": {"expires": 15}},
    "idle.grow_savings": {"task": "idle.grow_savings", "schedule": 300.0, "options": {"expires": 300}},
    "deadman": {"task": "config.ping_deadman", "schedule": 60.0, "options": {"expires": 60}},
    "teams.prune": {"task": "teams.prune", "schedule": crontab(hour="3", minute="41")},
}
