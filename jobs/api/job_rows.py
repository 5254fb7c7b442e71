"""What the API answers of jobs. Secrets are names only."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.inventory.models import SshHost
from fleet.inventory.remote import fingerprint
from jobs.api.job_examples import JOB_EXAMPLE, WHOLE_JOB_EXAMPLE
from jobs.api.job_money import ComparedSerializer, JobCostSerializer, compared_said, cost_said
from jobs.book.models import Attempt, Job, Node
from jobs.book.words import error_text, why_text


def newest_of(job: Job) -> Attempt | None:
    """Out of what was fetched already."""
    return max(job.attempts.all(), key=lambda attempt: attempt.number, default=None)


@extend_schema_serializer(examples=[OpenApiExample("job", JOB_EXAMPLE)])
class JobSerializer(serializers.ModelSerializer[Job]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    why = serializers.CharField(help_text="A code: why it is in this state; empty where nothing is to be said.")
    says = serializers.SerializerMethodField(help_text="The same in the language asked for.")
    machines = serializers.SerializerMethodField(help_text="Ids, in the order of ranks, of the newest attempt.")
    attempt = serializers.SerializerMethodField(help_text="Number of the newest attempt.")
    step = serializers.IntegerField(allow_null=True, help_text="How far it says that it is.")
    steps = serializers.IntegerField(allow_null=True, help_text="Of how many; null where it does not say.")
    created_by = serializers.CharField(source="created_label", help_text="A user name or a token.")

    class Meta:
        model = Job
        fields = list(JOB_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_says(self, job: Job) -> str:
        return why_text(job.why) if job.why else ""

    @extend_schema_field({"type": "array", "items": {"type": "integer"}})
    def get_machines(self, job: Job) -> list[int]:
        newest = newest_of(job)
        return [node.instance_id for node in newest.nodes.all()] if newest else []

    @extend_schema_field({"type": ["integer", "null"]})
    def get_attempt(self, job: Job) -> int | None:
        newest = newest_of(job)
        return newest.number if newest else None


class NodeSerializer(serializers.ModelSerializer[Node]):
    instance = serializers.IntegerField(source="instance_id", help_text="The machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    machine = serializers.CharField(source="instance.name", help_text="Its name.")
    failures = serializers.IntegerField(help_text="Visits in a row that did not reach it; the job runs on meanwhile.")
    error = serializers.CharField(help_text="A code: why it is not reached, or was lost; empty where all is well.")
    error_says = serializers.SerializerMethodField(help_text="The same in the language asked for.")
    offered_key = serializers.SerializerMethodField(
        help_text="Fingerprint of a host key that waits to be confirmed; empty: none does."
    )
    log_bytes = serializers.IntegerField(source="log_size", help_text="Of its log on the machine.")
    facts = serializers.DictField(help_text="What was found on the machine as it was prepared.")

    class Meta:
        model = Node
        fields = [
            "rank",
            "instance",
            "machine",
            "state",
            "exit_code",
            "prepared_at",
            "started_at",
            "ended_at",
            "reached_at",
            "failures",
            "error",
            "error_says",
            "offered_key",
            "log_bytes",
            "facts",
        ]

    @extend_schema_field({"type": "string"})
    def get_error_says(self, node: Node) -> str:
        return error_text(node.error) if node.error else ""

    @extend_schema_field({"type": "string"})
    def get_offered_key(self, node: Node) -> str:
        host = offered_host(node)
        return fingerprint(host.offered) if host else ""


def offered_host(node: Node) -> SshHost | None:
    """Out of the machine's prefetched hosts: the one whose key waits for somebody's word."""
    if node.error not in {"host_key_new", "host_key_changed"}:
        return None
    return next((host for host in node.instance.ssh_hosts.all() if host.offered), None)


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    nodes = NodeSerializer(many=True)

    class Meta:
        model = Attempt
        fields = ["number", "state", "why", "created_at", "started_at", "ended_at", "nodes"]


@extend_schema_serializer(examples=[OpenApiExample("job", WHOLE_JOB_EXAMPLE)])
class WholeJobSerializer(JobSerializer):
    plan = serializers.CharField(help_text="What stands behind the planner's address; empty: from no plan.")
    predicted = serializers.DictField(help_text="What the planner said of it then.")
    files = serializers.SerializerMethodField(help_text="Their paths.")
    upload = serializers.IntegerField(source="upload_id", allow_null=True, help_text="Id of files that were sent.")
    environment = serializers.DictField(child=serializers.CharField(), help_text="Open values.")
    secret_names = serializers.ListField(child=serializers.CharField(), help_text="Values are never answered.")
    serving = serializers.DictField(help_text="How it serves; empty where it serves nothing.")
    budget_amount = serializers.DecimalField(
        max_digits=12,
        decimal_places=2,
        allow_null=True,
        help_text="What it may cost, all attempts together; null: any.",
    )
    cost = serializers.SerializerMethodField()
    measured = serializers.SerializerMethodField(help_text="Of its newest attempt beside its plan.")
    attempts = AttemptSerializer(many=True, help_text="The first first.")

    class Meta(JobSerializer.Meta):
        fields = list(WHOLE_JOB_EXAMPLE)

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_files(self, job: Job) -> list[Any]:
        return [file.get("path", "") for file in job.files]

    @extend_schema_field(JobCostSerializer)
    def get_cost(self, job: Job) -> dict[str, Any]:
        return cost_said(job)

    @extend_schema_field(ComparedSerializer(many=True))
    def get_measured(self, job: Job) -> list[dict[str, Any]]:
        return compared_said(job)
