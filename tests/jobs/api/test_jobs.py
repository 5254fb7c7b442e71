"""Jobs over the API: begun, listed, stopped and run again, by whoever may; secrets go in and never come out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.credentials import open_sealed
from fleet.inventory.models import Hold, SshHost
from fleet.inventory.remote import fingerprint
from fleet.teams.models import AuditEntry, Membership, Role, Scope
from jobs.book.models import Job, JobState, Node
from jobs.metrics.store import store_lines
from tests.jobs.api.conftest import JOBS, PLACE
from tests.jobs.conftest import newest

pytestmark = pytest.mark.django_db
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIDtsMxMXm1Gv0tV2aGqQF0hl6fcAOcTmrMhYbQWqSbR"
SECRET = "hf_verysecret"


@pytest.fixture
def job(begin, machine):
    return begin("python train.py", machine, secrets={"HF_TOKEN": SECRET}, environment={"A": "1"}, retries=2)


def test_a_job_is_begun_and_its_machines_are_held(post, machine, make_instance, project):
    second = make_instance(name="train-02", managed=True, ssh=PLACE)
    answer = post(
        name="run\u202e-1",
        command="torchrun train.py",
        kind="training",
        machines=[second.pk, machine.pk],
        project="vision",
        environment={"A": "1"},
        secrets={"HF_TOKEN": SECRET},
        files=[{"path": "ds.json", "text": "{}"}],
        repository="https://git.example.org/acme/train.git",
        deadline_at=(timezone.now() + timedelta(hours=3)).isoformat(),
        when_done="stop",
        retries=1,
    )
    assert answer.status_code == 201, answer.text
    said = answer.json()
    assert (said["name"], said["state"], said["machines"]) == ("run-1", "queued", [second.pk, machine.pk])
    assert [(node["rank"], node["machine"]) for node in said["attempts"][0]["nodes"]] == [
        (0, "train-02"),
        (1, "train-01"),
    ]
    assert (said["secret_names"], said["files"], said["project"]) == (["HF_TOKEN"], ["ds.json"], "vision")
    assert SECRET not in answer.text
    job = Job.objects.get()
    assert (job.project, open_sealed(job.secrets), job.created_label[:12]) == (
        project,
        {"HF_TOKEN": SECRET},
        "token script",
    )
    assert Hold.objects.filter(ended_at=None).count() == 2
    assert AuditEntry.objects.get(action="job.create").via == "api"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"command": " "}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"machines": []}, "machines"),
        ({"machines": [999_999]}, "machines"),
        ({"machines": None}, "machines"),
        ({"kind": "dance"}, "kind"),
        ({"comand": "x"}, "comand"),
        ({"environment": {"A B": "1"}}, "environment"),
        ({"secrets": {"RACKRENT_TOKEN": "1"}}, "secrets"),
        ({"environment": {"A": "1"}, "secrets": {"A": "2"}}, "secrets"),
        ({"files": [{"path": "../x", "text": ""}]}, "files"),
        ({"files": [{"path": "x", "txt": ""}]}, "files.0.txt"),
        ({"repository": "http://git.example.org/x"}, "repository"),
        ({"data_path": "data"}, "data_path"),
        ({"retries": 11}, "retries"),
        ({"processes_per_node": 0}, "processes_per_node"),
        ({"deadline_at": "2020-01-01T00:00:00Z"}, "deadline_at"),
        ({"project": "none-such"}, "project"),
        ({"kind": "serving", "serving": {"port": 0}}, "serving.port"),
        ({"serving": {"port": 8000}}, "serving"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name_and_holds_nothing(post, machine, wrong, field):
    answer = post(**{"name": "x", "command": "true", "machines": [machine.pk]} | wrong)
    assert (answer.status_code, answer.json()["field"]) == (404 if wrong == {"machines": [999_999]} else 400, field)
    assert answer.json()["detail"]
    assert not Job.objects.exists()
    assert not Hold.objects.exists()


def test_a_machine_that_does_not_run_or_is_nobodys_is_refused(post, machine, make_instance):
    stopped = make_instance(name="off", state="stopped", managed=True, ssh=PLACE)
    stray = make_instance(name="stray", managed=False, ssh=PLACE)
    for one in (stopped, stray):
        answer = post(name="x", command="true", machines=[machine.pk, one.pk])
        assert (answer.status_code, answer.json()["field"]) == (400, "machines")
        assert one.name in answer.json()["detail"]
    assert post(name="x", command="true", machines=[machine.pk, machine.pk]).status_code == 400


def test_a_viewer_launches_stops_and_runs_nothing(job, machine, post, acme, vera, as_user, as_token):
    for viewer in (as_user(vera), as_token(acme, Scope.READ)):
        assert post(client=viewer, name="x", command="true", machines=[machine.pk]).status_code == 403
        for act in ("stop", "rerun", "confirm-host-key"):
            assert post(f"{job.pk}/{act}/", client=viewer).status_code == 403
        assert viewer.get(f"{JOBS}{job.pk}/").status_code == 200
    assert Job.objects.get() == job
    assert job.stop_asked_at is None


def test_another_team_finds_neither_jobs_nor_machines(job, machine, post, rival, as_token):
    stranger = as_token(rival, Scope.ADMIN)
    assert stranger.get(JOBS).json()["results"] == []
    assert stranger.get(f"{JOBS}{job.pk}/").status_code == 404
    for act in ("stop", "rerun", "confirm-host-key"):
        assert post(f"{job.pk}/{act}/", client=stranger).status_code == 404
    assert post(client=stranger, name="x", command="true", machines=[machine.pk]).status_code == 404
    assert Job.objects.get() == job


def test_machines_of_two_teams_make_no_job(machine, rival, make_instance, alice, as_user, post):
    Membership.objects.create(team=rival, user=alice, role=Role.OPERATOR)
    theirs = make_instance(name="theirs", team=rival, managed=True, ssh=PLACE)
    answer = post(client=as_user(alice), name="x", command="true", machines=[machine.pk, theirs.pk])
    assert (answer.status_code, answer.json()["field"]) == (400, "machines")
    assert not Job.objects.exists()


def test_the_same_key_begins_one_job(post, machine):
    body = {"name": "x", "command": "true", "machines": [machine.pk]}
    keyed = [post(headers={"Idempotency-Key": "k-1"}, **body) for _ in range(2)]
    assert keyed[0].json() == keyed[1].json()
    assert Job.objects.count() == 1
    own = [post(idempotency_key="nightly-7", **body).json()["id"] for _ in range(2)]
    assert own[0] == own[1]
    assert Job.objects.count() == 2
    other = post(**body | {"idempotency_key": "nightly-7", "command": "false"})
    assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")
    assert Job.objects.count() == 2


def test_no_answer_holds_a_secret(job, script):
    for address in (JOBS, f"{JOBS}{job.pk}/"):
        text = script.get(address).text
        assert SECRET not in text
        assert job.token_hash == "" or job.token_hash not in text
    assert script.get(f"{JOBS}{job.pk}/").json()["secret_names"] == ["HF_TOKEN"]


def test_the_list_is_narrowed(job, begin, make_instance, script, project):
    other = make_instance(name="train-02", managed=True, ssh=PLACE)
    ended = begin("true", other, name="evaluate", kind="command", project=project)
    Job.objects.filter(pk=ended.pk).update(state=JobState.FAILED, why="exit", ended_at=timezone.now())

    def names(**asked: object) -> list[str]:
        return [row["name"] for row in script.get(JOBS, asked).json()["results"]]

    assert names() == ["evaluate", "run-1"]
    assert names(state="failed,lost") == ["evaluate"]
    assert names(open="true") == ["run-1"]
    assert names(open="false") == ["evaluate"]
    assert names(kind="training") == ["run-1"]
    assert names(instance=other.pk) == ["evaluate"]
    assert names(project="vision") == ["evaluate"]
    assert names(search="RUN") == ["run-1"]
    assert names(ordering="created_at") == ["run-1", "evaluate"]
    says = script.get(JOBS, {"state": "failed"}, headers={"Accept-Language": "en"}).json()["results"][0]["says"]
    assert says == "the command ended with an error"


def test_how_far_it_says_it_is_stands_in_the_list(job, script):
    store_lines(attempt=newest(job), lines=[(1, "step 10/200 loss 2.1")], at=timezone.now())
    row = script.get(JOBS).json()["results"][0]
    assert (row["step"], row["steps"], row["attempt"]) == (10, 200, 1)


def test_it_is_stopped_once_and_what_has_ended_says_so(job, post):
    answers = [post(f"{job.pk}/stop/") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["stop_asked_at"] == answers[1].json()["stop_asked_at"]
    assert AuditEntry.objects.filter(action="job.stop").count() == 1
    Job.objects.filter(pk=job.pk).update(state=JobState.STOPPED)
    late = post(f"{job.pk}/stop/")
    assert (late.status_code, late.json()["error"]) == (409, "ended")


def test_it_is_run_again_as_it_was(job, post, machine):
    answer = post(f"{job.pk}/rerun/", name="run-2")
    assert answer.status_code == 201, answer.text
    again = Job.objects.exclude(pk=job.pk).get()
    assert (again.name, again.command, again.retries, again.rerun_of) == ("run-2", job.command, 2, job)
    assert open_sealed(again.secrets) == {"HF_TOKEN": SECRET}
    assert [node.instance for node in newest(again).nodes.all()] == [machine]
    assert SECRET not in answer.text


def test_secrets_go_to_other_machines_only_when_given_again(job, post, make_instance):
    elsewhere = make_instance(name="train-02", managed=True, ssh=PLACE)
    refused = post(f"{job.pk}/rerun/", machines=[elsewhere.pk])
    assert (refused.status_code, refused.json()["field"]) == (400, "secrets")
    assert "HF_TOKEN" in refused.json()["detail"]
    assert post(f"{job.pk}/rerun/", machines=[elsewhere.pk], secrets={"HF_TOKEN": "hf_other"}).status_code == 201
    again = Job.objects.exclude(pk=job.pk).get()
    assert open_sealed(again.secrets) == {"HF_TOKEN": "hf_other"}


def test_a_host_key_is_confirmed_by_its_fingerprint(job, post, script, machine):
    Node.objects.filter(attempt__job=job).update(error="host_key_new", failures=1)
    SshHost.objects.create(instance=machine, host="198.51.100.7", port=22, offered=HOST_KEY, offered_at=timezone.now())
    node = script.get(f"{JOBS}{job.pk}/").json()["attempts"][0]["nodes"][0]
    assert node["offered_key"] == fingerprint(HOST_KEY)
    wrong = post(f"{job.pk}/confirm-host-key/", rank=0, fingerprint="SHA256:other")
    assert (wrong.status_code, wrong.json()["field"]) == (400, "fingerprint")
    assert post(f"{job.pk}/confirm-host-key/", rank=7, fingerprint=node["offered_key"]).json()["field"] == "rank"
    assert post(f"{job.pk}/confirm-host-key/", rank=0, fingerprint=node["offered_key"]).status_code == 200
    assert SshHost.objects.get().pinned == HOST_KEY
