"""Jobs in the browser: begun from a form, followed on a page, stopped and explained; nobody else sees them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.models import SshHost
from fleet.inventory.remote import fingerprint
from fleet.inventory.ssh_keys import set_ssh_key
from jobs.book.models import Job, JobState, Node
from jobs.findings.keep import examine
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.metrics.store import store_lines
from tests.jobs.conftest import ACTOR, newest
from tests.jobs.findings.test_keep import OUT_OF_MEMORY

pytestmark = pytest.mark.django_db
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIDtsMxMXm1Gv0tV2aGqQF0hl6fcAOcTmrMhYbQWqSbR"


@pytest.fixture
def machine(make_instance):
    return make_instance(gpus=1, managed=True, ssh=PLACE)


@pytest.fixture
def job(begin, machine):
    return begin("python train.py", machine, secrets={"HF_TOKEN": "hf_verysecret"}, environment={"A": "1"})


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def node_of(job) -> Node:
    return newest(job).nodes.get()


def filled(machine, **more: object) -> dict[str, object]:
    return {
        "name": "run-1",
        "kind": "training",
        "machines": [machine.pk],
        "command": "echo hi",
        "retries": 0,
        "when_done": "idle",
    } | more


def test_a_job_is_begun_from_the_form(browser, acme, machine):
    answer = browser.post(
        "/t/acme/jobs/new/", filled(machine, environment="A=1\n# no\nexport B='two words'", secrets="HF_TOKEN=hf_x")
    )
    job = Job.objects.get()
    assert answer.headers["Location"] == f"/t/acme/jobs/{job.pk}/"
    assert job.created_by is not None
    assert (job.environment, job.secret_names, job.created_by.username) == (
        {"A": "1", "B": "two words"},
        ["HF_TOKEN"],
        "alice",
    )
    assert node_of(job).instance == machine
    assert "run-1" in browser.get("/t/acme/jobs/").content.decode()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"command": "  "}, "Say what to run."),
        ({"machines": []}, "Choose at least one machine."),
        ({"environment": "nonsense"}, "Line 1 is not NAME=value."),
        ({"environment": "RACKRENT_X=1"}, "Names that begin with RACKRENT_"),
        ({"environment": "A=1", "secrets": "A=2"}, "keep it in one place"),
        ({"repository": "git@host:me/it"}, "Write an https:// address"),
        ({"repository": "https://u:p@host.example/it"}, "Write an https:// address"),
        ({"data_path": "data"}, "Write the whole path"),
        ({"deadline_at": "2020-01-01T00:00"}, "The deadline is over."),
    ],
)
def test_what_cannot_be_run_is_said_and_nothing_typed_is_lost(browser, machine, given, says):
    answer = browser.post("/t/acme/jobs/new/", filled(machine, name="my own name") | given)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert says in page
    assert 'value="my own name"' in page
    assert not Job.objects.exists()


def test_a_machine_that_went_off_meanwhile_is_refused_by_its_name(browser, machine):
    machine.state = "stopped"
    machine.save()
    page = browser.post("/t/acme/jobs/new/", filled(machine)).content.decode()
    assert not Job.objects.exists()
    assert "errmsg" in page


def test_the_page_of_a_job_says_where_it_is_and_what_is_wrong(browser, job):
    attempt = newest(job)
    attempt.started_at, attempt.state = timezone.now() - timedelta(minutes=5), JobState.RUNNING
    attempt.save()
    store_part(
        node=node_of(job),
        part=Part(0, f"step 30/120 loss=2.5\n<script>alert(1)</script>\n{OUT_OF_MEMORY}".encode()),
        at=timezone.now(),
    )
    store_lines(attempt=attempt, lines=[(1, "step 30/120 loss=2.5")], at=timezone.now())
    examine(attempt, now=timezone.now())
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    for said in (
        "Step 30",
        "of 120",
        "--w:25.0",
        "Out of GPU memory: activations",
        'href="#L5"',
        "python train.py",
        "HF_TOKEN",
        "&lt;script&gt;",
    ):
        assert said in page, said
    assert "<script>alert" not in page
    assert "hf_verysecret" not in page


def test_the_log_is_searched_and_downloaded(browser, job):
    store_part(node=node_of(job), part=Part(0, b"first\nSecond word\nthird\n"), at=timezone.now())
    page = browser.get(f"/t/acme/jobs/{job.pk}/?q=second").content.decode()
    assert 'id="L2"' in page
    assert 'id="L1"' not in page
    answer = browser.get(f"/t/acme/jobs/{job.pk}/log/0/")
    assert b"".join(answer.streaming_content) == b"first\nSecond word\nthird\n"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="run-1-0.log"'


def test_nonsense_in_the_address_shows_the_newest(browser, job):
    for query in ("attempt=99", "attempt=x", "rank=7", "rank=-1", "q=%00", "page=x"):
        assert browser.get(f"/t/acme/jobs/{job.pk}/?{query}").status_code == 200
    assert browser.get("/t/acme/jobs/?state=x&kind=y&page=9").status_code == 200


def test_it_is_stopped_once(browser, job):
    assert "Keep it running" in browser.get(f"/t/acme/jobs/{job.pk}/stop/").content.decode()
    assert not job.events.filter(kind="stop_asked").exists()
    for _again in range(2):
        assert browser.post(f"/t/acme/jobs/{job.pk}/stop/").status_code == 302
    job.refresh_from_db()
    assert job.stop_asked_by.username == "alice"
    assert job.events.filter(kind="stop_asked").count() == 1


def test_a_new_host_key_is_confirmed_by_the_fingerprint_that_was_shown(browser, job, machine):
    Node.objects.update(error="host_key_new", failures=2)
    host = SshHost.objects.create(
        instance=machine, host="198.51.100.7", port=22, offered=HOST_KEY, offered_at=timezone.now()
    )
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    assert fingerprint(HOST_KEY) in page
    browser.post(f"/t/acme/jobs/{job.pk}/trust/0/", {"shown": "SHA256:other"})
    host.refresh_from_db()
    assert host.pinned == ""
    browser.post(f"/t/acme/jobs/{job.pk}/trust/0/", {"shown": fingerprint(HOST_KEY)})
    host.refresh_from_db()
    assert host.pinned == HOST_KEY


def test_another_is_begun_like_it_with_its_secrets_to_be_typed_anew(browser, job):
    page = browser.get(f"/t/acme/jobs/new/?like={job.pk}").content.decode()
    assert "python train.py" in page
    assert "HF_TOKEN=" in page
    assert "hf_verysecret" not in page


def test_viewers_look_and_others_do_not(as_user, vera, charlie, job, acme):
    set_ssh_key(actor=ACTOR, team=acme)
    viewer = as_user(vera)
    assert viewer.get(f"/t/acme/jobs/{job.pk}/").status_code == 200
    assert viewer.get("/t/acme/jobs/new/").status_code == 403
    for path in ("stop/", "trust/0/"):
        assert viewer.post(f"/t/acme/jobs/{job.pk}/{path}").status_code == 403
    other = as_user(charlie)
    assert other.get(f"/t/rival/jobs/{job.pk}/").status_code == 404
    assert other.get(f"/t/rival/jobs/{job.pk}/log/0/").status_code == 404
    assert other.get(f"/t/acme/jobs/{job.pk}/").status_code == 404
    assert other.get(f"/t/rival/jobs/new/?like={job.pk}").status_code == 404
