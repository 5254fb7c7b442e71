from __future__ import annotations

import json
import time

import pytest
import redis
from django.core.cache import cache
from httpx import ASGITransport, AsyncClient

from config import health as health_module
from config import pulse
from config.asgi import application
from config.celery import app
from config.health import Health, Part, healthz, measured
from config.tasks import note_worker_pulse

pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning")


@pytest.fixture(autouse=True)
def pulses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health_module, "health", Health())
    cache.delete_many([pulse.BEAT, pulse.WORKER])
    yield
    cache.delete_many([pulse.BEAT, pulse.WORKER])


async def ask(method: str = "GET"):
    async with AsyncClient(transport=ASGITransport(application), base_url="http://probe.invalid") as client:
        return await client.request(method, "/healthz")


def alive(age: float = 0.0) -> None:
    for key in (pulse.BEAT, pulse.WORKER):
        pulse.note(key, time.time() - age)


async def test_all_is_well_when_all_four_work():
    alive()
    answer = await ask()
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    parts = answer.json()
    assert parts.pop("status") == "ok"
    assert {name: part["ok"] for name, part in parts.items()} == dict.fromkeys(
        ("database", "broker", "worker", "beat"), True
    )
    assert parts["worker"]["age_seconds"] < 5


async def test_a_probe_needs_neither_a_known_host_name_nor_a_sign_in():
    alive()
    assert (await ask("HEAD")).status_code == 200
    assert (await ask("POST")).status_code == 405


@pytest.mark.parametrize("part", ["worker", "beat"])
async def test_a_process_that_was_never_seen_is_not_ok(part: str):
    alive()
    cache.delete(f"pulse:{part}")
    answer = await ask()
    assert answer.status_code == 503
    assert answer.json()[part] == {"ok": False, "detail": "not seen yet", "age_seconds": None}
    assert answer.json()["status"] == "failing"


@pytest.mark.parametrize("part", ["worker", "beat"])
async def test_a_process_that_went_silent_is_not_ok(part: str):
    alive()
    pulse.note(f"pulse:{part}", time.time() - pulse.STALE_SECONDS - 1)
    answer = await ask()
    assert answer.status_code == 503
    assert not answer.json()[part]["ok"]
    assert answer.json()[part]["age_seconds"] > pulse.STALE_SECONDS


async def test_a_database_that_takes_no_connection_is_not_ok(settings):
    alive()
    settings.DATABASE_URL = "postgresql://someone:hidden-word@127.0.0.1:1/nowhere"
    answer = await ask()
    assert answer.status_code == 503
    assert not answer.json()["database"]["ok"]
    assert "hidden-word" not in answer.text


async def test_a_broker_that_takes_no_connection_is_not_ok(monkeypatch: pytest.MonkeyPatch):
    alive()
    monkeypatch.setattr(app, "connection_for_read", lambda: app.connection("redis://:hidden-word@127.0.0.1:1/0"))
    answer = await ask()
    assert answer.status_code == 503
    assert not answer.json()["broker"]["ok"]
    assert "hidden-word" not in answer.text


async def test_callers_share_one_measurement_for_a_moment(monkeypatch: pytest.MonkeyPatch):
    measurements = []

    async def count() -> Part:
        measurements.append(1)
        return Part(ok=True, detail="")

    monkeypatch.setattr(health_module, "database", count)
    for _ in range(5):
        await ask()
    assert len(measurements) == 1


async def test_a_part_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch):
    import asyncio

    monkeypatch.setattr(health_module, "TIMEOUT_SECONDS", 0.01)
    never: asyncio.Future[Part] = asyncio.get_running_loop().create_future()
    assert not (await measured(never)).ok


def test_the_worker_proves_itself_by_running_the_task():
    note_worker_pulse()
    age = pulse.age_seconds(pulse.WORKER, time.time())
    assert age is not None
    assert age < 5
    assert pulse.age_seconds(pulse.BEAT, time.time()) is None


class TestBeat:
    @pytest.fixture
    def sent(self) -> list[str]:
        return []

    @pytest.fixture
    def scheduler(self, sent, tmp_path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(app, "send_task", lambda name, **options: sent.append(name))
        scheduler = pulse.PulsingScheduler(app, schedule_filename=str(tmp_path / "schedule"), lazy=True)
        scheduler.setup_schedule()
        monkeypatch.setattr(scheduler, "apply_async", lambda entry, **options: sent.append(entry.task))
        yield scheduler
        scheduler.close()

    def test_it_notes_its_own_tick_even_where_no_worker_runs(self, scheduler):
        assert scheduler.tick() <= pulse.PULSE_SECONDS
        assert pulse.age_seconds(pulse.BEAT, time.time()) is not None
        assert pulse.age_seconds(pulse.WORKER, time.time()) is None

    def test_it_asks_the_worker_for_a_sign_of_life_at_once(self, scheduler, sent):
        assert sent == ["config.pulse"]

    def test_it_goes_on_where_the_broker_is_away(self, scheduler, monkeypatch: pytest.MonkeyPatch, caplog):
        def fail(*args: object) -> None:
            raise redis.ConnectionError("redis://:hidden-word@broker")

        monkeypatch.setattr(pulse, "note", fail)
        scheduler.tick()
        assert "Beat could not reach the broker: ConnectionError" in caplog.text
        assert "hidden-word" not in caplog.text

    def test_the_pulse_is_on_the_schedule_and_does_not_pile_up(self):
        entry = app.conf.beat_schedule["pulse"]
        assert entry["schedule"] == pulse.PULSE_SECONDS
        assert entry["options"]["expires"] <= pulse.PULSE_SECONDS


async def test_the_answer_is_json():
    sent = []

    async def send(message) -> None:
        sent.append(message)

    await healthz({"method": "GET"}, None, send)  # type: ignore[arg-type]
    assert set(json.loads(sent[1]["body"])) == {"status", "database", "broker", "worker", "beat"}
