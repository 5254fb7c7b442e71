"""Exporters on a machine's loopback, reached through SSH: first a person confirms the host key, then it is read like any other."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from fleet.inventory.models import SshHost, SshKey
from fleet.inventory.remote import fingerprint
from fleet.inventory.ssh_keys import set_ssh_key
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from fleet.telemetry.models import HostLatest, ScrapeTarget
from fleet.telemetry.scrape.targets import confirm_target_host, host_of
from fleet.telemetry.scrape.words import failure_text
from tests.fakes.exporter import FakeExporter, answer
from tests.fakes.ssh_server import FakeSshServer, running
from tests.fleet.telemetry.scrape.test_stored import scrape
from tests.programs import needs

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.system("test")
GOOD = "node_load1 1.5\n"


@pytest.fixture
def key(acme) -> SshKey:
    return set_ssh_key(actor=ACTOR, team=acme)


@pytest.fixture
def server(key) -> Iterator[FakeSshServer]:
    with running(FakeSshServer(welcome=[key.public_key])) as fake:
        yield fake


@pytest.fixture
def target(server, exporter: FakeExporter, make_instance) -> ScrapeTarget:
    exporter.pages["/metrics"] = answer(GOOD)
    return make_target(make_instance(), exporter, server.port)


def make_target(machine, exporter: FakeExporter, port: int) -> ScrapeTarget:
    url = exporter.url("/metrics")
    return ScrapeTarget.objects.create(instance=machine, url=url, ssh=f"worker@127.0.0.1:{port}")


def confirm(target: ScrapeTarget) -> None:
    host = host_of(target)
    assert host is not None
    assert confirm_target_host(actor=ACTOR, target=target, shown=fingerprint(host.offered))


def test_nothing_is_read_before_the_host_key_is_confirmed_and_then_it_is(target, server, exporter):
    assert scrape() == ["ssh_host_key_new"]
    assert (server.users, exporter.asked) == ([], [])
    target.refresh_from_db()
    host = SshHost.objects.get()
    assert (host.instance, host.host, host.port, host.pinned) == (target.instance, "127.0.0.1", server.port, "")
    assert fingerprint(host.offered) in failure_text(target)

    confirm(target)
    assert scrape() == [""]
    assert HostLatest.objects.get(instance=target.instance).load1 == 1.5
    assert server.users == ["worker"]
    assert AuditEntry.objects.get(action="ssh_host.confirm").new["fingerprint"].startswith("SHA256:")


def test_a_changed_host_key_is_refused_until_somebody_confirms_it(target, server, exporter, key):
    scrape()
    confirm(target)
    assert scrape() == [""]
    with running(FakeSshServer(welcome=[key.public_key])) as other:
        SshHost.objects.update(port=other.port)
        ScrapeTarget.objects.update(ssh=f"worker@127.0.0.1:{other.port}", next_scrape_at="2026-01-01T00:00Z")
        before = len(exporter.asked)
        assert scrape() == ["ssh_host_key_changed"]
        assert (other.users, len(exporter.asked)) == ([], before)
        target.refresh_from_db()
        assert "Somebody may stand in between" in failure_text(target)
        confirm(target)
        assert scrape() == [""]
        old = AuditEntry.objects.filter(action="ssh_host.confirm").order_by("-pk")[0].old
        assert old["fingerprint"] == fingerprint(server.host_key.export_public_key().decode())


def test_a_key_that_was_shown_earlier_cannot_be_confirmed_any_more(target):
    scrape()
    assert not confirm_target_host(actor=ACTOR, target=target, shown="SHA256:made-up")
    assert SshHost.objects.get().pinned == ""


def test_a_team_without_a_key_is_told_so(target):
    SshKey.objects.all().delete()
    assert scrape() == ["ssh_no_key"]


def test_a_machine_that_does_not_let_us_in(target, server):
    scrape()
    confirm(target)
    server.welcome.clear()
    assert scrape() == ["ssh_no_key_fits"]


def test_the_ssh_address_is_under_the_guard(target, settings):
    settings.ALLOWED_NETWORKS = []
    assert scrape() == ["refused_private"]
    assert not SshHost.objects.exists()


def test_a_silent_ssh_server_holds_up_no_other(target, exporter, make_instance, impatient):
    scrape()
    confirm(target)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bad = make_target(make_instance(name="silent"), exporter, silent.getsockname()[1])
        assert sorted(scrape()) == ["", "timeout"]
    bad.refresh_from_db()
    assert bad.error == "timeout"


def test_an_exporter_that_does_not_answer_behind_ssh(target, exporter, impatient):
    from tests.fakes.exporter import silent

    exporter.pages["/metrics"] = silent
    scrape()
    confirm(target)
    assert scrape() == ["timeout"]


class TestRealSshd:
    @pytest.fixture
    def sshd(self, key, tmp_path: Path) -> Iterator[int]:
        """OpenSSH's own server on loopback, as the user who runs this test, with the line that the page shows."""
        program = needs("sshd")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "host_key"))
        keys = tmp_path / "authorized_keys"
        keys.write_text(f"restrict,port-forwarding {key.public_key}\n")
        for path in (tmp_path / "host_key", keys):
            path.chmod(0o600)
        settings = {
            "ListenAddress": f"127.0.0.1:{port}",
            "HostKey": tmp_path / "host_key",
            "AuthorizedKeysFile": keys,
            "PidFile": tmp_path / "pid",
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
        }
        config = tmp_path / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with subprocess.Popen([program, "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if b"listening" in line:
                    break
            assert process.poll() is None, "sshd has ended"
            yield port
            process.terminate()
            process.stderr.read()

    def test_it_is_read_through_openssh(self, sshd, exporter, make_instance):
        import getpass

        exporter.pages["/metrics"] = answer(GOOD)
        machine = make_instance()
        target = ScrapeTarget.objects.create(
            instance=machine, url=exporter.url("/metrics"), ssh=f"{getpass.getuser()}@127.0.0.1:{sshd}"
        )
        assert scrape() == ["ssh_host_key_new"]
        confirm(target)
        assert scrape() == [""]
        assert HostLatest.objects.get(instance=machine).load1 == 1.5
