"""From a run's log to what people are told: kept, diagnosed, the end of the job, the alert and the machine's page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.alerts.models import Alert
from fleet.alerts.words import why_of
from jobs.book.models import Job, JobState
from jobs.findings.alerts.telling import tell_of_jobs
from jobs.findings.models import JobFinding
from jobs.findings.tasks import examine_ended
from jobs.logs.part import Part
from jobs.logs.store import store_part
from tests.jobs.conftest import newest
from tests.jobs.diagnosis.logs import LOGS

pytestmark = pytest.mark.django_db
NOW = timezone.now()
# One of each room of the texts, with what stands in the alert.
CASES = {
    "training_memory/optimizer_init_group": "Out of GPU memory: optimizer states",
    "serving_memory/context_v1": "The longest context does not fit into the KV cache",
    "symptoms/no-kernel-image_2": "Versions do not fit together",
    "others/disk_checkpoint": "The disk is full",
}


@pytest.mark.parametrize("name", CASES)
def test_the_alert_names_what_the_log_says(begin, make_instance, name):
    evidence, (code,) = LOGS[name]
    machine = make_instance(name="train-01", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}])
    more = {"serving": {"port": 8000}} if evidence.kind == "serving" else {}
    job = begin("true", machine, kind=evidence.kind.value, **more)
    node = newest(job).nodes.get()
    text = "\n".join(line.text for line in evidence.lines) + "\n"
    store_part(node=node, part=Part(0, text.encode()), at=NOW)
    node.exit_code, node.state = 1, JobState.FAILED
    node.save(update_fields=["exit_code", "state"])
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED, why="exit", ended_at=NOW)
    assert examine_ended(job.pk) == 1
    assert JobFinding.objects.get().code == code
    tell_of_jobs(now=NOW + timedelta(minutes=1))
    assert why_of(Alert.objects.get()) == f"the command ended with an error; exit code 1; {CASES[name]}"
