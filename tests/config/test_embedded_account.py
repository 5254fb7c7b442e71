from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config.embedded import EmbeddedError, account, data_home
from config.embedded.account import Account, kept_secret, make_private, server_home, service_account, socket_directory

OURSELVES = Account(os.geteuid(), os.getegid())


@pytest.fixture(autouse=True)
def _default_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACKRENT_DATA_DIR", raising=False)


class TestDirectories:
    def test_one_of_ours_is_private(self, tmp_path: Path) -> None:
        assert stat.S_IMODE(make_private(tmp_path / "run", OURSELVES).stat().st_mode) == 0o700

    def test_one_that_is_open_to_others_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run").chmod(0o755)
        with pytest.raises(EmbeddedError, match=r"is open to other users \(mode 755\)"):
            make_private(tmp_path / "run", OURSELVES)
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755

    def test_the_missing_ones_above_are_made_private_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("os.geteuid", lambda: OURSELVES.uid or 1000)
        make_private(tmp_path / "var" / "keys", OURSELVES)
        assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700

    def test_an_outer_one_may_be_readable_but_not_writable_to_others(self, tmp_path: Path):
        (tmp_path / "var").mkdir()
        (tmp_path / "var").chmod(0o755)
        assert make_private(tmp_path / "var", OURSELVES, tolerated=0o755)
        (tmp_path / "var").chmod(0o777)
        with pytest.raises(EmbeddedError, match="chmod 755"):
            make_private(tmp_path / "var", OURSELVES, tolerated=0o755)

    def test_one_that_belongs_to_somebody_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir(mode=0o700)
        with pytest.raises(EmbeddedError, match="belongs to user"):
            make_private(tmp_path / "run", Account(OURSELVES.uid + 1, OURSELVES.gid))

    def test_a_link_set_as_a_trap_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(EmbeddedError, match="is not a directory"):
            make_private(tmp_path / "run", OURSELVES)

    def test_sockets_go_to_a_short_path_when_the_home_is_deep(self, tmp_path: Path) -> None:
        assert socket_directory(Path("/srv/rackrent")) == Path("/srv/rackrent/run")
        deep = Path("/srv") / ("x" * 150)
        assert len(os.fsencode(socket_directory(deep))) <= 85
        assert socket_directory(Path("/srv/a,b")).parent == Path(tempfile.gettempdir())
        assert socket_directory(deep) == socket_directory(deep) != socket_directory(deep / "y")


@pytest.fixture
def passable() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rackrent-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


class TestAsRoot:
    @pytest.fixture(autouse=True)
    def _root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.geteuid", lambda: 0)

    def test_data_lies_in_a_directory_of_our_own(self, tmp_path: Path) -> None:
        assert data_home(tmp_path).parent == account.STATE_ROOT
        assert data_home(tmp_path) != data_home(tmp_path / "other")
        assert server_home(data_home(tmp_path) / "postgres") == data_home(tmp_path) / "postgres"
        assert server_home(tmp_path / "postgres").parent == account.STATE_ROOT

    def test_a_chosen_directory_is_honoured(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RACKRENT_DATA_DIR", str(tmp_path / "volume"))
        assert data_home(Path("/srv/rackrent")) == tmp_path / "volume"
        assert server_home(tmp_path / "volume" / "postgres") == tmp_path / "volume" / "postgres"

    def test_a_chosen_directory_is_the_home_itself(self, monkeypatch: pytest.MonkeyPatch, passable: Path):
        monkeypatch.setenv("RACKRENT_DATA_DIR", str(passable))
        assert account.make_home(data_home(Path("/srv/rackrent"))) == passable

    def test_a_chosen_directory_that_the_system_user_cannot_pass_is_refused(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        with pytest.raises(EmbeddedError, match="The system user cannot pass"):
            account.require_passable(tmp_path)

    def test_it_says_what_to_do_where_no_account_can_be_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RACKRENT_SYSTEM_USER", "rackrent-missing")
        monkeypatch.setattr("shutil.which", lambda *_, **__: None)
        with pytest.raises(
            EmbeddedError, match=r"no useradd.*useradd --system rackrent-missing.*RACKRENT_SYSTEM_USER.*ordinary user"
        ):
            service_account()

    def test_root_itself_is_no_system_account(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RACKRENT_SYSTEM_USER", "root")
        with pytest.raises(EmbeddedError, match="PostgreSQL refuses that"):
            service_account()


def test_an_ordinary_user_keeps_data_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert data_home(tmp_path) == tmp_path / "var"
    assert server_home(tmp_path / "var" / "postgres") == tmp_path / "var" / "postgres"


def test_a_secret_is_made_once_and_closed_to_others(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: kept_secret(tmp_path / "secret"), range(32)))
    assert len(found) == 1
    assert len(found.pop()) >= 43
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
