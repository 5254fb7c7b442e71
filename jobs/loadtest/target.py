"""What a load test asks, and of which machines: those of its own job alone."""

from __future__ import annotations

from fleet.inventory.credentials import CredentialError, open_sealed
from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import private_keys
from fleet.telemetry.serving.engines import ENGINES
from jobs.book.models import Attempt, Job
from jobs.book.serving import Engine, Serving
from jobs.loadtest.asking import Question
from jobs.loadtest.manage import serving_nodes
from jobs.loadtest.models import LoadTest
from jobs.loadtest.plan import LoadPlan
from jobs.loadtest.reach import LoadFailed, Replica
from jobs.runner.places import places_of


def replicas_of(attempt: Attempt) -> list[Replica]:
    """Raises LoadFailed."""
    nodes = serving_nodes(attempt)
    key = private_keys([attempt.job.team_id]).get(attempt.job.team_id)
    if not nodes or key is None:
        raise LoadFailed("job_ended" if not nodes else "no_ssh_key")
    hosts = list(SshHost.objects.filter(instance__in=[node.instance_id for node in nodes]))
    return [
        Replica(
            node.rank,
            places_of(node.instance, [host for host in hosts if host.instance_id == node.instance_id]),
            key,
        )
        for node in nodes
    ]


def question_of(test: LoadTest, plan: LoadPlan) -> Question:
    """Raises LoadFailed."""
    serving = Serving.of(test.job.serving)
    if serving is None:
        raise LoadFailed("job_ended")
    engine = ENGINES.get(serving.engine)
    return Question(
        base=f"http://127.0.0.1:{serving.port}",
        metrics_url=f"http://127.0.0.1:{serving.metrics_port or serving.port}{engine.path if engine else '/metrics'}",
        model=serving.model,
        prompt_tokens=plan.prompt_tokens,
        answer_tokens=plan.answer_tokens,
        request_seconds=plan.request_seconds,
        key=key_of(test.job, test.key_name),
        # Answers of one length: what vLLM and its like take, and what others leave aside or refuse.
        extra={"ignore_eos": True} if serving.engine == Engine.VLLM else {},
    )


def key_of(job: Job, name: str) -> str:
    """Raises LoadFailed."""
    if not name:
        return ""
    try:
        return str({**job.environment, **open_sealed(job.secrets)}.get(name, ""))
    except CredentialError:
        raise LoadFailed("key_sealed") from None
