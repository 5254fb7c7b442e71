"""What is sent to begin a job, to run it again, and to confirm a host key."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.rest.bodies import Body
from fleet.rest.filters import BIGGEST_ID
from fleet.teams.fields import one_line
from jobs.api.job_examples import NEW_JOB_EXAMPLE
from jobs.book.models import JobKind, WhenDone
from jobs.book.refusing import MOST_MACHINES, MOST_RETRIES

MOST_FILES = 50
MOST_FILE_CHARACTERS = 256 * 1024


class LineField(serializers.CharField):
    """One line, without what turns a line around: as the page's own fields."""

    def to_internal_value(self, data: Any) -> str:
        return one_line(super().to_internal_value(data))


def machines_field(**more: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID),
        min_length=1,
        max_length=MOST_MACHINES,
        help_text="Ids of machines; the first is rank 0. They are held from now on until it ends.",
        **more,
    )


def names_and_values(help_text: str, **more: Any) -> serializers.DictField:
    return serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False, max_length=64 * 1024),
        required=False,
        help_text=help_text,
        **more,
    )


class JobFileBody(Body[dict[str, Any]]):
    path = serializers.CharField(max_length=400, help_text="Within the directory in which the command runs.")
    text = serializers.CharField(max_length=MOST_FILE_CHARACTERS, trim_whitespace=False, allow_blank=True)
    executable = serializers.BooleanField(default=False)


@extend_schema_serializer(examples=[OpenApiExample("a training run", NEW_JOB_EXAMPLE)])
class NewJob(Body[dict[str, Any]]):
    """Names are those of a job; what is left out is as the page has it."""

    name = LineField(max_length=120, required=False, help_text="Needed without a plan.")
    command = serializers.CharField(
        max_length=20_000,
        trim_whitespace=False,
        required=False,
        help_text="Run by the machine's own shell in a directory of the job. With a plan: in place of its launcher's.",
    )
    machines = machines_field()
    kind = serializers.ChoiceField(
        choices=JobKind.choices, required=False, help_text="command, or what the launcher of a plan starts."
    )
    plan = serializers.CharField(
        max_length=4000, required=False, allow_blank=True, help_text="`query` of a plan's answer, with a launcher."
    )
    launcher = LineField(
        max_length=40,
        required=False,
        help_text="Of the plan's artefacts: command, files and the rest are filled from it.",
    )
    installs = serializers.BooleanField(required=False, help_text="Whether install.sh among its files runs first.")
    starts_anyway = serializers.BooleanField(
        default=False, help_text="Also on a machine of which the check says that it cannot work there."
    )
    project = serializers.CharField(max_length=80, required=False, help_text="Its slug.")
    environment = names_and_values("Open values, by name.")
    secrets = names_and_values(
        "By name. Kept encrypted, sent to the machines, stars in the log, never answered.", write_only=True
    )
    files = serializers.ListField(
        child=JobFileBody(), required=False, max_length=MOST_FILES, help_text="Written beside the command."
    )
    repository = LineField(max_length=500, required=False, help_text="https://…, fetched on each machine.")
    revision = LineField(max_length=100, required=False, help_text="A branch, a tag or a commit of it.")
    upload = serializers.IntegerField(
        min_value=1,
        max_value=BIGGEST_ID,
        required=False,
        help_text="Id of files that were sent: each machine unpacks them where the command runs.",
    )
    data_path = LineField(max_length=400, required=False, help_text="On the machines, as RACKRENT_DATA.")
    checkpoint_path = LineField(max_length=400, required=False, help_text="On the machines, as RACKRENT_CHECKPOINTS.")
    processes_per_node = serializers.IntegerField(min_value=1, max_value=64, required=False)
    retries = serializers.IntegerField(min_value=0, max_value=MOST_RETRIES, default=0)
    resume_arguments = LineField(
        max_length=400, required=False, help_text="Added to the command from the second attempt on."
    )
    serving = serializers.DictField(
        required=False,
        help_text="Of kind serving: port, health_path, model, engine, metrics_port, restart, most_restarts.",
    )
    when_done = serializers.ChoiceField(
        choices=WhenDone.choices, default=WhenDone.IDLE, help_text="What becomes of the machines."
    )
    deadline_at = serializers.DateTimeField(required=False, help_text="Then it is stopped.")
    budget_amount = serializers.DecimalField(
        max_digits=12, decimal_places=2, min_value=Decimal("0.01"), required=False, help_text="What it may cost."
    )
    budget_currency = serializers.RegexField(
        r"^[A-Z]{3}$", required=False, help_text="ISO 4217, in capitals; the team's unless told."
    )
    idempotency_key = serializers.CharField(
        max_length=200,
        required=False,
        help_text="The team's, for ever: the same again answers the job that it began. The header of that name is kept for a day.",
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Without a launcher it says itself what to run."""
        if not given.get("launcher"):
            if given.get("plan"):
                raise serializers.ValidationError({"launcher": _("Say which launcher of the plan is to start it.")})
            for name in ("name", "command"):
                if name not in given:
                    raise serializers.ValidationError({name: self.fields[name].error_messages["required"]})
        return given

    def validate_kind(self, word: str) -> JobKind:
        return JobKind(word)

    def validate_when_done(self, word: str) -> WhenDone:
        return WhenDone(word)


@extend_schema_serializer(
    examples=[OpenApiExample("the same again", {}), OpenApiExample("elsewhere", {"machines": [21]})]
)
class AgainBody(Body[dict[str, Any]]):
    """What is left out is as it was; a deadline is not."""

    name = LineField(max_length=120, required=False)
    machines = machines_field(required=False)
    upload = serializers.IntegerField(
        min_value=1, max_value=BIGGEST_ID, required=False, help_text="Id of other files that were sent."
    )
    secrets = names_and_values(
        "In place of those that it had. On other machines than before they have to be sent.", write_only=True
    )
    when_done = serializers.ChoiceField(choices=WhenDone.choices, required=False)
    deadline_at = serializers.DateTimeField(required=False)

    def validate_when_done(self, word: str) -> WhenDone:
        return WhenDone(word)


@extend_schema_serializer(examples=[OpenApiExample("stop", {})])
class NothingMore(Body[dict[str, Any]]):
    """Nothing but the address says what to do."""


@extend_schema_serializer(
    examples=[
        OpenApiExample("host key", {"rank": 0, "fingerprint": "SHA256:EAxlGZ6Xc262BGkqdpx+lCareqkg4Ogygfl28oqF2Lo"})
    ]
)
class HostKeyOfRank(Body[dict[str, Any]]):
    rank = serializers.IntegerField(min_value=0, max_value=MOST_MACHINES)
    fingerprint = serializers.CharField(max_length=100, help_text="As `offered_key` of the node says it.")
