"""Jobs over the API: begun, listed, followed, stopped and run again. docs/jobs.md says how they run."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.ssh_keys import confirm_host_key
from fleet.rest.bodies import naming_fields
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter
from fleet.rest.parameters import number_of
from fleet.rest.problems import NamedProblem
from fleet.teams.writing import WritableRows
from jobs.api.handover import Waiting, handover_of, leave_to_wait
from jobs.api.job_bodies import AgainBody, HostKeyOfRank, NewJob, NothingMore
from jobs.api.job_rows import JobSerializer, WholeJobSerializer, newest_of, offered_host
from jobs.api.named import machines_named
from jobs.api.ordering import order_from, upload_named
from jobs.book.again import rerun_job
from jobs.book.manage import create_job, stop_job
from jobs.book.models import OPEN_STATES, Attempt, Job, JobKind, JobState, Node
from jobs.book.order import JobRefused
from jobs.metrics.models import JobPoint
from jobs.plans.refusing import refuse_plan

# Most proxies end an answer that is longer in coming.
MOST_WAIT_SECONDS = 60
WAIT = OpenApiParameter(
    "wait", int, description=f"Seconds, {MOST_WAIT_SECONDS} at most: the answer comes when the job has ended, or then."
)
NEWEST = JobPoint.objects.filter(attempt__job=OuterRef("pk"), step__isnull=False).order_by("-at", "-pk")
ATTEMPTS = Attempt.objects.order_by("number")
NODES = Node.objects.order_by("rank")
# Of its machine: whose key may wait to be confirmed.
HOSTS = "instance__ssh_hosts"


class JobFilter(django_filters.FilterSet):
    state = WordsFilter(choices=JobState.choices, help_text="States, separated by commas.")
    kind = WordsFilter(choices=JobKind.choices, help_text="Kinds, separated by commas.")
    open = FlagFilter(method="filter_open", help_text="Whether it has not ended.")
    instance = IdsFilter(method="filter_instance", help_text="Ids of machines that it runs or ran on.")
    project = django_filters.CharFilter("project__slug", help_text="Slug of a project.")
    search = django_filters.CharFilter("name", "icontains", help_text="A part of its name.")
    since = MomentFilter("created_at", "gte", help_text="Begun at or after this time.")
    until = MomentFilter("created_at", "lt", help_text="Begun before this time.")

    def filter_open(self, rows: QuerySet[Job], name: str, value: bool) -> QuerySet[Job]:
        return rows.filter(state__in=OPEN_STATES) if value else rows.exclude(state__in=OPEN_STATES)

    def filter_instance(self, rows: QuerySet[Job], name: str, value: list[int]) -> QuerySet[Job]:
        return rows.filter(pk__in=Node.objects.filter(instance__in=value).values("attempt__job"))


class JobViewSet(WritableRows[Job]):
    """What was begun on machines. One of them has its order and its attempts, each with its machines."""

    http_method_names = ["get", "post", "head"]
    queryset = (
        Job.objects.select_related("team", "project")
        .defer("secrets")
        .annotate(step=Subquery(NEWEST.values("step")[:1]), steps=Subquery(NEWEST.values("steps")[:1]))
    )
    serializer_class = JobSerializer
    filterset_class = JobFilter
    orderings = ("-created_at", "id", "ended_at")
    bodies = {
        "create": NewJob,
        "stop": NothingMore,
        "rerun": AgainBody,
        "confirm_host_key": HostKeyOfRank,
    }
    answers = {
        "create": (status.HTTP_201_CREATED, WholeJobSerializer),
        "stop": (status.HTTP_200_OK, WholeJobSerializer),
        "rerun": (status.HTTP_201_CREATED, WholeJobSerializer),
        "confirm_host_key": (status.HTTP_200_OK, WholeJobSerializer),
    }

    def get_queryset(self) -> QuerySet[Job]:
        rows = super().get_queryset()
        nodes = NODES if self.action == "list" else NODES.select_related("instance").prefetch_related(HOSTS)
        return rows.prefetch_related(Prefetch("attempts", ATTEMPTS.prefetch_related(Prefetch("nodes", nodes))))

    def get_serializer_class(self) -> type[JobSerializer]:
        return JobSerializer if self.action == "list" else WholeJobSerializer

    def get_known_parameters(self) -> Collection[str]:
        return {"wait"} if self.action == "retrieve" else super().get_known_parameters()

    @extend_schema(parameters=[WAIT])
    def retrieve(self, request: Request, pk: str) -> Response:
        """One of them, with its order and its attempts."""
        job = self.get_object()
        seconds = number_of(request, "wait", low=1, high=MOST_WAIT_SECONDS, default=0)
        if seconds and job.is_open and handover_of(request) is not None:
            leave_to_wait(request, Waiting(job.pk, seconds))
        return self.answer(job)

    def create(self, request: Request) -> Response:
        """Begins a job. Its machines are held from now on until it ends."""
        asked = self.body(request)
        machines = machines_named(request, asked.pop("machines"))
        key = asked.pop("idempotency_key", "")
        order = order_from(machines[0].team, asked)
        with naming_fields(JobRefused):
            refuse_plan(order, machines)
            job = create_job(
                actor=self.actor(request),
                team=machines[0].team,
                order=order,
                machines=machines,
                now=timezone.now(),
                idempotency_key=key,
            )
        if (job.name, job.command) != (order.name, order.command):
            raise NamedProblem(
                _("This key began another job, “%(name)s”; take a new one for each.") % {"name": job.name},
                code="idempotency_key_reused",
                status_code=status.HTTP_422_UNPROCESSABLE_ENTITY,
                field="idempotency_key",
            )
        return self._whole(job, status.HTTP_201_CREATED)

    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        """Asks it to end: politely, and firmly after 20 seconds. To ask again is no error; what has ended is a 409."""
        job = self.get_object()
        self.body(request)
        if not stop_job(actor=self.actor(request), job=job, now=timezone.now()):
            job.refresh_from_db(fields=["state"])
            if not job.is_open:
                raise NamedProblem(
                    _("It has ended already."), code="ended", status_code=status.HTTP_409_CONFLICT, field=None
                )
        return self._whole(job)

    @action(detail=True, methods=["post"])
    def rerun(self, request: Request, pk: str) -> Response:
        """Begins the same again, on the same machines unless others are named."""
        job, asked = self.get_object(), self.body(request)
        ids = asked.pop("machines", None)
        machines = machines_named(request, ids) if ids else None
        secrets = asked.pop("secrets", None)
        if "upload" in asked:
            asked["upload"] = upload_named(job.team, asked["upload"])
        with naming_fields(JobRefused):
            again = rerun_job(
                actor=self.actor(request),
                job=job,
                machines=machines,
                secrets=secrets,
                changes=asked,
                now=timezone.now(),
            )
        return self._whole(again, status.HTTP_201_CREATED)

    @action(detail=True, methods=["post"], url_path="confirm-host-key")
    def confirm_host_key(self, request: Request, pk: str) -> Response:
        """Pins the host key that a machine of it showed, after you have compared its fingerprint."""
        job, asked = self.get_object(), self.body(request)
        newest = newest_of(job)
        node = next((node for node in newest.nodes.all() if node.rank == asked["rank"]), None) if newest else None
        if node is None:
            raise ValidationError({"rank": _("It has no such machine.")})
        host = offered_host(node)
        if host is None or not confirm_host_key(actor=self.actor(request), host=host, shown=asked["fingerprint"]):
            raise ValidationError({"fingerprint": _("The machine offers no such key now: read `offered_key`.")})
        Attempt.objects.filter(pk=node.attempt_id).update(next_at=timezone.now())
        return self._whole(job)

    def _whole(self, job: Job, code: int = status.HTTP_200_OK) -> Response:
        return self.answer(self.get_queryset().get(pk=job.pk), code)
