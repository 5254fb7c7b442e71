from __future__ import annotations

from datetime import timedelta

from axes.models import AccessLog
from django.utils import timezone

from config.celery import app
from fleet.teams.models import BrowserSession
from fleet.teams.tasks import prune


def test_ended_sessions_and_old_sign_ins_go(alice, bob, as_user, client, time_machine):
    now = timezone.now()
    client.post("/login/", {"username": "alice", "password": "correct horse", "stay": "on"})
    time_machine.move_to(now + timedelta(days=401))
    client.post("/login/", {"username": "bob", "password": "correct horse", "stay": "on"})
    prune()
    assert [session.user for session in BrowserSession.objects.all()] == [bob]
    assert [entry.username for entry in AccessLog.objects.all()] == ["bob"]


def test_it_runs_every_day():
    assert app.conf.beat_schedule["teams.prune"]["task"] == "teams.prune"
    app.loader.import_default_modules()
    assert "teams.prune" in app.tasks
