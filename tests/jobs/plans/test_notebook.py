"""A notebook: begun from its own form, reached through SSH alone, its token a secret that operators see once they ask."""

from __future__ import annotations

import asyncio
import os
import shlex
from html import unescape

import httpx
import pytest

from fleet.guard import Guard
from fleet.inventory.models import SshHost
from fleet.inventory.remote import SshAddress, ThroughSsh, open_ssh
from fleet.inventory.ssh_keys import private_keys
from fleet.teams.models import AuditEntry
from jobs.book.manage import stop_job
from jobs.book.models import Job, JobState, Node
from jobs.logs.read import whole_log
from jobs.plans.notebook import PORT, TOKEN, notebook_values
from tests.jobs.conftest import ACTOR, go_on, newest
from tests.jobs.plans.test_form import filled, form_of

# Stands in for `jupyter lab`: listens where it is told, asks for the token in the same header, and prints it as Jupyter does.
JUPYTER = """#!/usr/bin/env python3
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Server(BaseHTTPRequestHandler):
    def do_GET(self):
        good = self.headers.get("Authorization") == "token " + os.environ["JUPYTER_TOKEN"]
        self.send_response(200 if good else 403)
        self.end_headers()
        self.wfile.write(b"lab" if good else b"")

port = next(int(word.split("=")[1]) for word in sys.argv if word.startswith("--port="))
address = next(word.split("=")[1] for word in sys.argv if word.startswith("--ip="))
print(f"http://{address}:{port}/lab?token={os.environ['JUPYTER_TOKEN']}", flush=True)
HTTPServer((address, port), Server).serve_forever()
"""


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def node_of(job) -> Node:
    return newest(job).nodes.get()


@pytest.mark.django_db
def test_its_form_brings_a_token_and_a_port_of_its_own(browser, make_instance):
    make_instance(managed=True, ssh=[{"host": "198.51.100.7", "port": 22, "user": "root"}])
    answers = [browser.get("/t/acme/jobs/new/?notebook=1") for _again in range(2)]
    first, second = (form_of(answer).initial for answer in answers)
    assert first["secrets"] != second["secrets"]
    machine = form_of(answers[0]).fields["machines"].queryset.get()
    assert browser.post("/t/acme/jobs/new/?notebook=1", filled(answers[0], machines=[machine.pk])).status_code == 302
    job = Job.objects.get()
    assert (job.kind, job.secret_names, job.installs) == ("notebook", [TOKEN], True)
    assert "jupyterlab==" in job.files[0]["text"]


@pytest.mark.django_db(transaction=True)
def test_it_is_reached_through_ssh_with_its_token(machine_of, begin, browser, tmp_path, acme):
    (tmp_path / "jupyter").write_text(JUPYTER)
    (tmp_path / "jupyter").chmod(0o755)
    machine, server = machine_of()
    values = notebook_values() | {"installs": False}
    values["environment"] |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    job = begin(values.pop("command"), machine, **values)
    go_on(job, until=lambda _job: b"/lab?token" in b"".join(whole_log(node_of(job))))
    token, port = values["secrets"][TOKEN], values["environment"][PORT]
    assert token not in b"".join(whole_log(node_of(job))).decode()
    page = unescape(browser.get(f"/t/acme/jobs/{job.pk}/").content.decode())
    assert token not in page
    line = f"ssh -N -L 8888:127.0.0.1:{port} -p {server.port} {shlex.quote(server.address.rpartition(':')[0])}"
    assert line in page
    shown = browser.post(f"/t/acme/jobs/{job.pk}/notebook/")
    assert token in shown.content.decode()
    assert "no-store" in shown.headers["Cache-Control"]
    assert AuditEntry.objects.filter(action="job.show_token").count() == 1
    codes = asyncio.run(ask(server.address, private_keys([acme.pk])[acme.pk], int(port), token))
    assert codes == [403, 200]
    stop_job(actor=ACTOR, job=job, now=job.created_at)
    assert go_on(job).state == JobState.STOPPED


async def ask(address: str, private_key: str, port: int, token: str) -> list[int]:
    """Through the forward that `ssh -L` makes: without the token, and with it."""
    place, guard = SshAddress.parse(address), Guard.of(["127.0.0.0/8"])
    pinned = await SshHost.objects.values_list("pinned", flat=True).aget()
    async with (
        open_ssh(place, guard=guard, private_key=private_key, pinned=pinned) as connection,
        httpx.AsyncClient(transport=ThroughSsh(connection)) as client,
    ):
        headers = {"Authorization": f"token {token}"}
        answers = [await client.get(f"http://127.0.0.1:{port}/lab", headers=given) for given in ({}, headers)]
    return [answer.status_code for answer in answers]


@pytest.mark.django_db
def test_viewers_and_others_do_not_see_the_token(as_user, vera, charlie, begin, make_instance):
    machine = make_instance(managed=True, ssh=[{"host": "198.51.100.7", "port": 22, "user": "root"}])
    values = notebook_values()
    job = begin(values.pop("command"), machine, **values)
    assert as_user(vera).post(f"/t/acme/jobs/{job.pk}/notebook/").status_code == 403
    assert as_user(charlie).post(f"/t/rival/jobs/{job.pk}/notebook/").status_code == 404
    assert as_user(vera).get(f"/t/acme/jobs/{job.pk}/notebook/").status_code == 405
