"""Daily partitions: there before they are needed, gone when nobody may see them, whoever asks at once."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import time_machine
from django.core.management import call_command
from django.db import connection, connections

from fleet.telemetry.models import HostSample
from fleet.telemetry.partitions import days_kept, drop_old_partitions, ensure_partitions, existing_partitions
from fleet.telemetry.rollups.columns import HOUR, ROLLUPS
from fleet.telemetry.rollups.models import LateBucket, RollupProgress
from fleet.telemetry.rollups.totals import count_states
from fleet.telemetry.tasks import keep_partitions

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)


def days(table: str = "gpu_sample") -> list[str]:
    """Of 2031: there are those of today as well."""
    of_table = (partition.first for partition in existing_partitions() if partition.table.name == table)
    return [day.isoformat() for day in of_table if day.year == 2031]


def test_from_two_days_back_to_two_days_ahead():
    assert [day.isoformat() for day in days_kept(NOON)] == [f"2031-03-{number}" for number in (12, 13, 14, 15, 16)]


@pytest.mark.django_db
def test_a_migrated_database_has_todays():
    today = datetime.now(UTC).date()
    assert {today + timedelta(days=offset) for offset in range(-2, 3)} <= {
        partition.first for partition in existing_partitions() if partition.table.name == "gpu_sample"
    }


@pytest.mark.django_db
def test_making_them_again_changes_nothing():
    ensure_partitions(now=NOON)
    before = existing_partitions()
    ensure_partitions(now=NOON)
    assert existing_partitions() == before


@pytest.mark.django_db
def test_a_day_is_dropped_only_when_none_of_it_is_accepted_any_more():
    ensure_partitions(now=NOON)
    midnight = datetime(2031, 3, 15, tzinfo=UTC)
    drop_old_partitions(now=midnight + timedelta(minutes=59))
    assert days()[0] == "2031-03-12"
    drop_old_partitions(now=midnight + timedelta(minutes=61))
    assert days()[0] == "2031-03-13"


def stored(make_instance, at: datetime) -> None:
    HostSample.objects.create(instance=make_instance(), sampled_at=at, load1=1.0)


def rolled_until(moment: datetime) -> None:
    for resolution in ROLLUPS:
        RollupProgress.objects.update_or_create(
            resolution=resolution.name, defaults={"rolled_until": resolution.floor(moment)}
        )


@pytest.mark.django_db
def test_a_day_of_samples_is_dropped_only_when_it_is_rolled_up(make_instance):
    ensure_partitions(now=NOON)
    stored(make_instance, datetime(2031, 3, 12, 23, tzinfo=UTC))
    later = NOON + timedelta(days=3)

    def is_there() -> bool:
        drop_old_partitions(now=later)
        return "2031-03-12" in days("host_sample")

    assert is_there()
    rolled_until(datetime(2031, 3, 12, 23, 55, tzinfo=UTC))
    assert is_there()
    rolled_until(datetime(2031, 3, 13, tzinfo=UTC))
    late = LateBucket.objects.create(
        instance_id=1, bucket_at=datetime(2031, 3, 12, 4, tzinfo=UTC), bucket_seconds=HOUR.seconds
    )
    assert is_there()
    late.delete()
    assert not is_there()


@pytest.mark.django_db
def test_other_counts_beside_the_rollups_keep_no_day(make_instance):
    ensure_partitions(now=NOON)
    stored(make_instance, datetime(2031, 3, 12, 23, tzinfo=UTC))
    rolled_until(datetime(2031, 3, 13, tzinfo=UTC))
    count_states()
    assert RollupProgress.objects.count() > len(ROLLUPS)
    drop_old_partitions(now=NOON + timedelta(days=3))
    assert "2031-03-12" not in days("host_sample")


@pytest.mark.django_db
def test_weeks_and_months_go_when_settings_say_so(settings):
    ensure_partitions(now=NOON)
    assert (days("gpu_rollup_5min"), days("host_rollup_1h")) == (["2031-03-10"], ["2031-03-01"])
    # The week ends on the 17th at midnight, the month with the 31st.
    settings.ROLLUP_5MIN_RETENTION_DAYS = 7
    settings.ROLLUP_1H_RETENTION_DAYS = 31
    drop_old_partitions(now=datetime(2031, 3, 24, 0, 59, tzinfo=UTC))
    assert days("gpu_rollup_5min") == ["2031-03-10"]
    drop_old_partitions(now=datetime(2031, 3, 24, 1, 0, tzinfo=UTC))
    assert (days("gpu_rollup_5min"), days("gpu_rollup_1h")) == ([], ["2031-03-01"])
    drop_old_partitions(now=datetime(2031, 5, 2, 1, 0, tzinfo=UTC))
    assert days("gpu_rollup_1h") == []


@pytest.mark.django_db
def test_samples_are_kept_for_as_long_as_settings_say(settings):
    settings.RAW_RETENTION_DAYS = 7
    ensure_partitions(now=NOON)
    drop_old_partitions(now=NOON + timedelta(days=5))
    assert days()[0] == "2031-03-12"
    drop_old_partitions(now=NOON + timedelta(days=8))
    assert days()[0] == "2031-03-15"


@pytest.mark.django_db
def test_a_job_that_is_days_behind_gets_its_weeks_and_months():
    ensure_partitions(now=NOON, since=NOON - timedelta(days=40))
    assert days("gpu_rollup_1h") == ["2031-02-01", "2031-03-01"]
    assert days("gpu_rollup_5min")[0] == "2031-01-27"
    assert len(days()) == 43


@pytest.mark.django_db
def test_the_whole_window_can_be_stored_at_every_moment_of_a_day(make_instance):
    """[now - 48 h, now + 60 s] lies inside the partitions, also around midnight."""
    machine = make_instance()
    for hour in (0, 1, 12, 23):
        for moment in (NOON.replace(hour=hour), NOON.replace(hour=hour, minute=59, second=59)):
            ensure_partitions(now=moment)
            drop_old_partitions(now=moment)
            for offset in (timedelta(hours=-48), timedelta(seconds=60)):
                HostSample.objects.bulk_create(
                    [HostSample(instance=machine, sampled_at=moment + offset, load1=1.0)], ignore_conflicts=True
                )


@pytest.mark.django_db
def test_the_task_and_the_command_do_both(capsys):
    with time_machine.travel(NOON, tick=False):
        keep_partitions()
    with time_machine.travel(NOON + timedelta(days=2), tick=False):
        call_command("partitions")
    told = capsys.readouterr().out
    assert "dropped gpu_sample_20310312" in told
    assert days()[-1] == "2031-03-18"


@pytest.mark.django_db(transaction=True)
def test_two_processes_at_once_do_not_fail():
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def work() -> None:
        try:
            start.wait(10)
            ensure_partitions(now=NOON)
            drop_old_partitions(now=NOON + timedelta(days=5))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    drop_all_of_2031()


@pytest.mark.django_db(transaction=True)
def test_a_long_read_makes_a_drop_give_up_and_ingest_go_on(monkeypatch):
    from fleet.telemetry import partitions

    monkeypatch.setattr(partitions, "DROP_LOCK_TIMEOUT", "50ms")
    ensure_partitions(now=NOON)
    with psycopg.connect(**reader_parameters()) as reader:
        reader.execute("SELECT count(*) FROM gpu_sample")
        with pytest.raises(Exception, match="lock timeout"):
            drop_old_partitions(now=NOON + timedelta(days=9))


@pytest.mark.django_db(transaction=True)
def test_a_long_read_does_not_keep_new_days_from_being_made():
    with psycopg.connect(**reader_parameters()) as reader:
        reader.execute("SELECT count(*) FROM gpu_sample")
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        ensure_partitions(now=NOON)
        assert "2031-03-14" in days()
    drop_all_of_2031()


def reader_parameters() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    return {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if name in parameters}


def drop_all_of_2031() -> None:
    """Partitions outlive a test that commits."""
    with connection.cursor() as cursor:
        for partition in existing_partitions():
            if partition.first.year >= 2031:
                cursor.execute(f"DROP TABLE {partition.name}")
