from __future__ import annotations

import asyncio
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery
from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.embedded import EmbeddedError, EmbeddedValkey
from config.embedded.processes import command_line
from tests.config.embedded_home import long_private_path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_private_path(tmp_path_factory.mktemp("valkey")) / "valkey"


@pytest.fixture(scope="module")
def valkey(home: Path) -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey(home)
    server.start()
    yield server
    server.destroy()


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """A directory that the system account can pass, short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="rackrent-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_redis_py_takes_its_address(valkey: EmbeddedValkey) -> None:
    with redis.Redis.from_url(valkey.url) as client:
        assert client.ping()


@pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning")  # Celery's own call
def test_celery_takes_its_address_for_broker_and_results(valkey: EmbeddedValkey) -> None:
    app = Celery("trial", broker=valkey.celery_url, backend=valkey.celery_url)
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1)
        assert connection.as_uri().startswith("redis+socket://:**@")
    app.backend.store_result("trial-task", 42, "SUCCESS")
    assert app.backend.get_result("trial-task") == 42


def test_the_channel_layer_takes_its_address(valkey: EmbeddedValkey) -> None:
    async def echo() -> dict[str, object]:
        layer = RedisPubSubChannelLayer(hosts=[valkey.url])
        channel = await layer.new_channel()
        await layer.group_add("fleet", channel)
        await layer.group_send("fleet", {"type": "sample", "value": 1})
        message: dict[str, object] = await layer.receive(channel)
        await layer.flush()
        return message

    assert asyncio.run(echo()) == {"type": "sample", "value": 1}


def test_addresses_hold_where_the_path_has_blanks(tmp_path: Path, short_directory: Path) -> None:
    server = EmbeddedValkey(tmp_path / "valkey")
    server.run_dir = short_directory / "my sockets"
    try:
        server.start()
        with Celery("trial", broker=server.celery_url).connection_for_write() as connection:
            connection.ensure_connection(max_retries=1)
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
    finally:
        server.destroy()


def test_it_lets_nobody_in_without_the_password(valkey: EmbeddedValkey) -> None:
    client = redis.Redis(unix_socket_path=valkey.socket, retry=Retry(NoBackoff(), 0))
    with client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_it_opens_no_tcp_port_and_closes_its_socket(valkey: EmbeddedValkey) -> None:
    with redis.Redis.from_url(valkey.url) as client:
        assert list(client.config_get("port").values()) in (["0"], [b"0"])
    assert stat.S_IMODE(valkey.run_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(valkey.socket).stat().st_mode) == 0o700


def test_it_shows_no_password_in_the_process_list(valkey: EmbeddedValkey) -> None:
    assert valkey.process
    assert valkey.password not in " ".join(command_line(valkey.process.pid))


def test_a_second_start_reuses_the_server_and_does_not_stop_it(valkey: EmbeddedValkey, home: Path) -> None:
    with EmbeddedValkey(home) as second:
        assert second.process is None
    assert valkey.is_accepting()


def test_queued_messages_outlive_a_kill(tmp_path: Path) -> None:
    server = EmbeddedValkey(tmp_path / "valkey")
    try:
        server.start()
        with redis.Redis.from_url(server.url) as client:
            client.lpush("celery", "task")
            client.execute_command("WAITAOF", 1, 0, 5000)
        assert server.process
        server.process.kill()
        server.process.wait()
        server.start()
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            assert client.lrange("celery", 0, -1) == ["task"]
    finally:
        server.destroy()


def test_it_will_not_take_a_server_that_is_not_its_own(valkey: EmbeddedValkey, tmp_path: Path) -> None:
    stranger = EmbeddedValkey(tmp_path / "other", run_dir=valkey.run_dir)
    try:
        with pytest.raises(EmbeddedError, match="does not know our password"):
            stranger.start()
    finally:
        stranger.run_dir = stranger.home / "run"
        stranger.destroy()
