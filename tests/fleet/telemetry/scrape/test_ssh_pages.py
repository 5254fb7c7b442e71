"""SSH on pages and over the API: the team's key, the way through SSH, and confirming a host key."""

from __future__ import annotations

import subprocess

import asyncssh
import pytest
from django.test import Client

from fleet.inventory.credentials import open_sealed
from fleet.inventory.models import Instance, SshHost, SshKey
from fleet.inventory.remote import fingerprint
from fleet.inventory.ssh_keys import rotate_ssh_keys, set_ssh_key
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry, Scope
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.tasks import scrape_shard
from tests.programs import needs

pytestmark = pytest.mark.django_db

ACTOR = Actor.system("test")
PAGE = "/t/acme/settings/ssh/"
ON_MACHINE = {
    "url": "http://127.0.0.1:9469/metrics",
    "ssh": "root@203.0.114.9",
    "kind": "agent",
    "interval_seconds": "30",
}
HOST_KEY = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[str]:
    claims: list[str] = []
    monkeypatch.setattr(scrape_shard, "delay", claims.append)
    return claims


@pytest.fixture
def machine(make_instance) -> Instance:
    instance: Instance = make_instance()
    return instance


@pytest.fixture
def offered(machine) -> ScrapeTarget:
    """A target whose SSH server has shown a key that nobody confirmed."""
    target = ScrapeTarget.objects.create(
        instance=machine, url=ON_MACHINE["url"], ssh="root@203.0.114.9:22", error="ssh_host_key_new", failures=1
    )
    SshHost.objects.create(instance=machine, host="203.0.114.9", port=22, offered=HOST_KEY)
    return target


class TestTheTeamsKey:
    def test_it_is_made_and_only_its_public_half_shown(self, bob, acme, as_user):
        browser = as_user(bob)
        assert "None yet" in browser.get(PAGE).text
        assert browser.post(f"{PAGE}make/").status_code == 302
        key = SshKey.objects.get(team=acme)
        private = open_sealed(key.private_key)["private_key"]
        page = browser.get(PAGE).text
        assert f"restrict,port-forwarding {key.public_key}" in page
        assert fingerprint(key.public_key) in page
        assert private not in page
        assert key.public_key.startswith("ssh-ed25519 ")
        assert "PRIVATE" not in str(list(AuditEntry.objects.values("old", "new")))

    def test_one_of_your_own_takes_its_place(self, bob, acme, as_user):
        set_ssh_key(actor=ACTOR, team=acme)
        own = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
        as_user(bob).post(f"{PAGE}paste/", {"private_key": own.export_private_key().decode()})
        key = SshKey.objects.get()
        assert fingerprint(key.public_key) == own.get_fingerprint()
        assert AuditEntry.objects.filter(action="ssh_key.set").order_by("-pk")[0].new == {
            "fingerprint": own.get_fingerprint()
        }

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "required"),
            ("ssh-ed25519 AAAA", "no private key"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----", "no private key"),
            (
                asyncssh.generate_private_key("ssh-ed25519").export_private_key("pkcs8-pem", passphrase="pw").decode(),
                "passphrase",
            ),
            ("x" * 20_000, "16384"),
        ],
    )
    def test_what_is_no_usable_key_is_told_so(self, bob, as_user, text, says):
        answer = as_user(bob).post(f"{PAGE}paste/", {"private_key": text})
        assert answer.status_code == 422
        assert says in answer.text
        assert not SshKey.objects.exists()

    def test_openssh_s_own_key_with_a_passphrase_is_told_apart(self, bob, as_user, tmp_path):
        file = tmp_path / "key"
        words = [needs("ssh-keygen"), "-q", "-t", "ed25519", "-N", "some words", "-f", str(file)]
        subprocess.run(words, check=True)
        answer = as_user(bob).post(f"{PAGE}paste/", {"private_key": file.read_text()})
        assert (answer.status_code, "has a passphrase" in answer.text) == (422, True)

    def test_it_is_encrypted_anew_with_the_others(self, acme, settings):
        from cryptography.fernet import Fernet

        set_ssh_key(actor=ACTOR, team=acme)
        old, new = settings.CREDENTIAL_KEYS, Fernet.generate_key().decode()
        settings.CREDENTIAL_KEYS = [new, *old]
        assert rotate_ssh_keys(actor=ACTOR) == 1
        settings.CREDENTIAL_KEYS = [new]
        assert "PRIVATE KEY" in open_sealed(SshKey.objects.get().private_key)["private_key"]

    def test_a_viewer_sees_it_and_may_not_set_it(self, vera, acme, as_user):
        key = set_ssh_key(actor=ACTOR, team=acme)
        browser = as_user(vera)
        assert key.public_key in browser.get(PAGE).text
        for action in ("make/", "paste/"):
            assert browser.post(f"{PAGE}{action}", {"private_key": "x"}).status_code == 403


class TestTargets:
    def test_the_address_is_one_on_the_machine_itself(self, bob, machine, as_user):
        answer = as_user(bob).post(f"/t/acme/instances/{machine.pk}/exporters/add/", ON_MACHINE)
        assert answer.status_code == 302
        target = ScrapeTarget.objects.get()
        assert (target.url, target.ssh) == ("http://127.0.0.1:9469/metrics", "root@203.0.114.9:22")
        assert AuditEntry.objects.get(action="scrape_target.add").new["ssh"] == "root@203.0.114.9:22"

    @pytest.mark.parametrize(
        ("field", "value", "says"),
        [
            ("url", "http://203.0.114.7:9400/metrics", "on the machine itself"),
            ("url", "https://127.0.0.1:9400/metrics", "on the machine itself"),
            ("ssh", "203.0.114.9", "user@host"),
            ("ssh", "root@-oProxyCommand=x", "user@host"),
            ("ssh", "root@127.0.0.1", "ALLOWED_NETWORKS"),
            ("ssh", "root@169.254.169.254", "metadata"),
            ("ssh", "root@[::ffff:169.254.169.254]", "metadata"),
        ],
    )
    def test_bad_input_names_the_field(self, bob, machine, as_user, field, value, says):
        answer = as_user(bob).post(f"/t/acme/instances/{machine.pk}/exporters/add/", {**ON_MACHINE, field: value})
        assert answer.status_code == 422
        assert list(answer.context["form"].errors) == [field]
        assert says in "".join(answer.context["form"].errors[field])

    def test_a_kept_token_does_not_follow_to_another_way(self, bob, machine, as_user):
        browser = as_user(bob)
        browser.post(f"/t/acme/instances/{machine.pk}/exporters/add/", {**ON_MACHINE, "token": "s3cret"})
        target = ScrapeTarget.objects.get()
        changed = {**ON_MACHINE, "ssh": "root@203.0.114.10", "token": "", "enabled": "on"}
        answer = browser.post(f"/t/acme/exporters/{target.pk}/", changed)
        assert "type its token again" in "".join(answer.context["form"].errors["token"])

    def test_the_key_it_shows_is_confirmed_on_its_page(self, bob, offered, as_user, sent):
        browser = as_user(bob)
        shown = fingerprint(HOST_KEY)
        assert shown in browser.get(f"/t/acme/exporters/{offered.pk}/").text
        assert "Host key" in browser.get(f"/t/acme/instances/{offered.instance_id}/").text
        wrong = browser.post(f"/t/acme/exporters/{offered.pk}/host-key/", {"fingerprint": "SHA256:x"}, follow=True)
        assert "another key since" in wrong.text
        browser.post(f"/t/acme/exporters/{offered.pk}/host-key/", {"fingerprint": shown})
        host = SshHost.objects.get()
        assert (host.pinned, host.offered) == (HOST_KEY, "")
        offered.refresh_from_db()
        assert (offered.error, sent) == ("", [str(offered.claim)])

    def test_a_viewer_confirms_nothing(self, vera, offered, as_user):
        answer = as_user(vera).post(f"/t/acme/exporters/{offered.pk}/host-key/", {"fingerprint": fingerprint(HOST_KEY)})
        assert answer.status_code == 403
        assert SshHost.objects.get().pinned == ""


class TestApi:
    @pytest.fixture
    def script(self, acme) -> Client:
        from fleet.teams.models import APIToken
        from fleet.teams.secrets import new_token

        new = new_token("rrk")
        APIToken.objects.create(team=acme, name="x", scope=Scope.OPERATE, token_hash=new.hash, prefix=new.prefix)
        return Client(headers={"Authorization": f"Bearer {new.secret}"})

    def test_a_target_is_made_and_its_host_key_confirmed(self, script, offered):
        row = f"/api/v1/scrape-targets/{offered.pk}/"
        told = script.get(row).json()
        assert (told["ssh"], told["ssh_host_key"], told["ssh_offered_key"]) == (
            "root@203.0.114.9:22",
            "",
            fingerprint(HOST_KEY),
        )
        assert "Nobody has confirmed" in told["failure"]
        wrong = script.post(f"{row}confirm-host-key/", {"fingerprint": "x"}, content_type="application/json")
        assert (wrong.status_code, wrong.json()["field"]) == (400, "fingerprint")
        body = {"fingerprint": fingerprint(HOST_KEY)}
        done = script.post(f"{row}confirm-host-key/", body, content_type="application/json")
        assert done.status_code == 200
        assert (done.json()["ssh_host_key"], done.json()["ssh_offered_key"]) == (fingerprint(HOST_KEY), "")
        assert AuditEntry.objects.get(action="ssh_host.confirm").via == "api"

    def test_the_way_is_a_field_and_refusals_name_it(self, script, machine):
        body = {"instance": machine.pk, "url": ON_MACHINE["url"], "ssh": "root@203.0.114.9"}
        made = script.post("/api/v1/scrape-targets/", body, content_type="application/json")
        assert (made.status_code, made.json()["ssh"]) == (201, "root@203.0.114.9:22")
        refused = script.post(
            "/api/v1/scrape-targets/", {**body, "ssh": "root@127.0.0.1"}, content_type="application/json"
        )
        assert (refused.status_code, refused.json()["field"]) == (400, "ssh")
