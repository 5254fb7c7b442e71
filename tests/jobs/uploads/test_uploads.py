"""Files for jobs: sent by whoever may launch, kept once, unpacked on the job's machines, dropped when nobody uses them."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from fleet.teams.models import AuditEntry, Scope
from jobs.book.models import Job, JobState
from jobs.logs.read import last_lines
from jobs.uploads import keep
from jobs.uploads.keep import keep_upload, packed_files, prune_uploads
from jobs.uploads.models import JobUpload, JobUploadPart
from tests.api.conftest import as_token, make_token
from tests.jobs.conftest import ACTOR, go_on, newest
from tests.jobs.uploads.archives import tar_of, zip_of

__all__ = ["as_token", "make_token"]
pytestmark = pytest.mark.django_db
UPLOADS, JOBS = "/api/v1/job-uploads/", "/api/v1/jobs/"
FILES = {"train.py": b"print('hello from the archive')\n", "lib/run.sh": b"echo ran\n"}
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01", gpus=1, managed=True, ssh=PLACE)


@pytest.fixture
def script(acme, as_token):
    return as_token(acme, Scope.OPERATE)


def send(client, name: str = "code.tar.gz", data: bytes | None = None, **headers: str):
    file = SimpleUploadedFile(name, tar_of(FILES).getvalue() if data is None else data)
    return client.post(UPLOADS, {"file": file}, headers=headers)


@pytest.fixture
def kept(acme):
    """kept(…) is an upload of alice's team."""

    def make(name: str = "code.tar.gz", now: datetime | None = None) -> JobUpload:
        made = tar_of(FILES)
        size = len(made.getvalue())
        return keep_upload(actor=ACTOR, team=acme, name=name, file=made, size_bytes=size, now=now or timezone.now())

    return make


def test_a_file_is_kept_once_however_often_it_is_sent(script):
    data = tar_of(FILES).getvalue()
    first, second = send(script, data=data), send(script, data=data, **{"Idempotency-Key": "k"})
    assert (first.status_code, second.status_code) == (201, 201), first.text
    said = first.json()
    assert said["id"] == second.json()["id"]
    assert (said["sha256"], said["size_bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
    assert (said["file_count"], said["unpacked_bytes"]) == (2, sum(map(len, FILES.values())))
    assert AuditEntry.objects.filter(action="job_upload.create").count() == 1
    assert [row["id"] for row in script.get(UPLOADS, {"sha256": said["sha256"]}).json()["results"]] == [said["id"]]


@pytest.mark.parametrize(
    ("name", "data"), [("evil.tar.gz", tar_of({"../x": b""})), ("evil.zip", zip_of({"/x": b""})), ("x.zip", None)]
)
def test_what_is_refused_is_said_by_name_and_kept_nowhere(script, name, data):
    answer = send(script, name, data.getvalue() if data else b"none")
    assert (answer.status_code, answer.json()["field"]) == (400, "file")
    assert not JobUpload.objects.exists()


def test_what_is_too_large_is_refused(script, settings, monkeypatch):
    settings.JOB_UPLOAD_CAP_BYTES = 1000
    assert send(script, "a.bin", b"x" * 1001).json()["field"] == "file"
    assert send(script, "a.bin", b"x" * 1000).status_code == 201
    monkeypatch.setattr(keep, "TEAM_BYTES", 10)
    assert "drop some" in send(script, "b.bin", b"y").json()["detail"]


def test_only_whoever_may_launch_sends_and_drops(kept, acme, rival, vera, as_user, as_token):
    upload = kept()
    for viewer in (as_user(vera), as_token(acme, Scope.READ)):
        assert send(viewer).status_code == 403
        assert viewer.delete(f"{UPLOADS}{upload.pk}/").status_code == 403
    stranger = as_token(rival, Scope.ADMIN)
    assert stranger.get(f"{UPLOADS}{upload.pk}/").status_code == 404
    assert stranger.delete(f"{UPLOADS}{upload.pk}/").status_code == 404
    assert JobUploadPart.objects.exists()


def begun(client, machine, **more: object):
    body = {"name": "run", "command": "true", "machines": [machine.pk], **more}
    return client.post(JOBS, body, content_type="application/json")


def test_a_job_has_uploads_of_its_own_team_only(kept, script, machine, rival):
    theirs = keep_upload(
        actor=ACTOR, team=rival, name="x", file=tar_of(FILES, mode="w"), size_bytes=1, now=timezone.now()
    )
    for pk in (theirs.pk, 999_999):
        answer = begun(script, machine, upload=pk)
        assert (answer.status_code, answer.json()["field"]) == (400, "upload")
    assert begun(script, machine, upload=kept().pk).status_code == 201
    assert Job.objects.get().upload == JobUpload.objects.get(name="code.tar.gz")


def test_what_a_job_that_goes_on_needs_is_not_dropped(kept, script, machine):
    upload = kept()
    job = Job.objects.get(pk=begun(script, machine, upload=upload.pk).json()["id"])
    refused = script.delete(f"{UPLOADS}{upload.pk}/")
    assert (refused.status_code, refused.json()["error"]) == (409, "in_use")
    Job.objects.filter(pk=job.pk).update(state=JobState.SUCCEEDED)
    assert [script.delete(f"{UPLOADS}{upload.pk}/").status_code for _ in range(2)] == [204, 204]
    assert not JobUploadPart.objects.exists()
    again = script.post(f"{JOBS}{job.pk}/rerun/", {}, content_type="application/json")
    assert (again.status_code, again.json()["field"]) == (400, "upload")
    assert kept().pk != upload.pk
    assert script.get(UPLOADS, {"kept": "false"}).json()["results"][0]["id"] == upload.pk


def test_what_nobody_uses_goes_after_a_month(kept, begin, machine):
    past = timezone.now() - timedelta(days=31)
    old, used = kept("old.tar.gz", now=past), kept("used.tar.gz", now=past)
    kept("new.tar.gz")
    begin("true", machine, upload=used)
    assert prune_uploads(now=timezone.now()) == 1
    assert set(JobUpload.objects.exclude(dropped_at=None)) == {old}
    assert prune_uploads(now=timezone.now()) == 0


def test_a_large_one_lies_in_small_rows(acme, machine, begin, monkeypatch):
    monkeypatch.setattr(keep, "PART_BYTES", 100)
    made = tar_of({"noise": bytes(range(256)) * 3}, mode="w")
    upload = keep_upload(actor=ACTOR, team=acme, name="x.tar", file=made, size_bytes=1, now=timezone.now())
    assert JobUploadPart.objects.count() > 2
    assert len(packed_files(begin("true", machine, upload=upload))) == upload.packed_bytes


def test_it_is_unpacked_where_the_command_runs_on_a_real_machine(kept, begin, machine_of):
    machine, server = machine_of()
    job = begin(
        "cat train.py && sh lib/run.sh && ls -l train.py", machine, upload=kept(), files=[{"path": "a", "text": "b"}]
    )
    go_on(job)
    assert job.state == JobState.SUCCEEDED, job.why
    lines = [line.text for line in last_lines(newest(job).nodes.get())]
    assert lines[:2] == ["print('hello from the archive')", "ran"]
    assert lines[2].startswith("-rw-------")
    work: Path = server.jobs / newest(job).marker / "work"
    assert {"train.py", "lib", "a", "hosts"} <= {path.name for path in work.iterdir()}


def test_files_are_sent_with_the_form_and_kept_for_the_job_like_it(alice, as_user, machine, acme):
    browser = as_user(alice)
    form = {
        "name": "run",
        "kind": "command",
        "machines": [machine.pk],
        "command": "true",
        "retries": 0,
        "when_done": "idle",
        "serving_port": "",
    }
    evil = browser.post("/t/acme/jobs/new/", {**form, "upload": SimpleUploadedFile("x.zip", b"none")})
    assert evil.status_code == 422
    assert "cannot be read" in evil.text
    sent = browser.post("/t/acme/jobs/new/", {**form, "upload": SimpleUploadedFile("a.tgz", tar_of(FILES).getvalue())})
    assert sent.status_code == 302, sent.text
    first = Job.objects.get()
    assert first.upload is not None
    browser.post(f"/t/acme/jobs/new/?like={first.pk}", form)
    assert Job.objects.exclude(pk=first.pk).get().upload == first.upload
