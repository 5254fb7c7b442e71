"""Jobs, their attempts, the machines of each attempt, and every change of them as a row."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

__all__ = ["Attempt", "Job", "JobEvent", "JobKind", "JobState", "Node", "WhenDone"]


class JobKind(models.TextChoices):
    """jobs.diagnosis.evidence.Kind, with its words."""

    TRAINING = "training", _("training")
    SERVING = "serving", pgettext_lazy("job", "serving")
    NOTEBOOK = "notebook", _("notebook")
    COMMAND = "command", _("command")


class JobState(models.TextChoices):
    """queued → preparing → running → succeeded | failed | stopped | lost. `lost`: nobody can say what became of it, or its machine is gone."""

    QUEUED = "queued", pgettext_lazy("job", "queued")
    PREPARING = "preparing", pgettext_lazy("job", "preparing")
    RUNNING = "running", pgettext_lazy("job", "running")
    STOPPING = "stopping", pgettext_lazy("job", "stopping")
    SUCCEEDED = "succeeded", pgettext_lazy("job", "succeeded")
    FAILED = "failed", pgettext_lazy("job", "failed")
    STOPPED = "stopped", pgettext_lazy("job", "stopped")
    LOST = "lost", pgettext_lazy("job", "lost")


OPEN_STATES = ("queued", "preparing", "running", "stopping")


class WhenDone(models.TextChoices):
    RELEASE = "release", _("release the machines")
    IDLE = "idle", _("let their idle policy decide")
    STOP = "stop", _("stop the machines")


class Job(models.Model):
    """What is to be run, and where it stands. The columns up to `budget_currency` are the order; nobody changes them after it began.

    `plan`: query of the planner's address that it was made from, "" = none; `predicted`: what the planner said then, JSON-ready
    (diagnosis.evidence.Predicted). `command`: run by the machine's own shell in the job's directory. `environment`: names and values, no secrets;
    `secrets` are sealed with CREDENTIAL_KEYS. `repository`: an https address, with `revision`.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="jobs")
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs")
    name = models.CharField(_("name"), max_length=120)
    kind = models.CharField(_("kind"), max_length=12, choices=JobKind, default=JobKind.COMMAND)
    plan = models.CharField(max_length=4000, blank=True)
    launcher = models.CharField(max_length=40, blank=True)
    predicted = models.JSONField(default=dict, blank=True)
    command = models.TextField(_("command"), max_length=20_000)
    # Files of the launcher: [{"path", "text", "executable"}], relative to the job's directory.
    files = models.JSONField(default=list, blank=True)
    environment = models.JSONField(default=dict, blank=True)
    secrets = models.BinaryField(default=bytes, blank=True)
    secret_names = models.JSONField(default=list, blank=True)
    repository = models.CharField(max_length=500, blank=True)
    revision = models.CharField(max_length=100, blank=True)
    upload = models.ForeignKey("jobs.JobUpload", on_delete=models.RESTRICT, null=True, blank=True, related_name="jobs")
    data_path = models.CharField(max_length=400, blank=True)
    checkpoint_path = models.CharField(max_length=400, blank=True)
    processes_per_node = models.PositiveIntegerField(null=True, blank=True)
    retries = models.PositiveSmallIntegerField(default=0)
    # Appended to the command of an attempt after the first: how it goes on from a checkpoint.
    resume_arguments = models.CharField(max_length=400, blank=True)
    # book.serving.Serving; {} for other kinds.
    serving = models.JSONField(default=dict, blank=True)
    # Its install.sh among `files` runs first; it starts where the check of a machine says that it cannot work.
    installs = models.BooleanField(default=False)
    starts_anyway = models.BooleanField(default=False)
    when_done = models.CharField(max_length=8, choices=WhenDone, default=WhenDone.IDLE)
    deadline_at = models.DateTimeField(null=True, blank=True)
    # What it may cost at most, all attempts together.
    budget_amount = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    budget_currency = models.CharField(max_length=3, blank=True)
    rerun_of = models.ForeignKey("jobs.Job", on_delete=models.SET_NULL, null=True, related_name="reruns")

    state = models.CharField(max_length=12, choices=JobState, default=JobState.QUEUED)
    state_since = models.DateTimeField(default=timezone.now)
    why = models.CharField(max_length=40, blank=True, help_text="Code of words.WHYS.")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_label = models.CharField(max_length=200, blank=True)
    idempotency_key = models.CharField(max_length=200, blank=True)
    stop_asked_at = models.DateTimeField(null=True)
    stop_asked_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    # From then on it is stopped: it has cost what it may.
    budget_spent_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # By which its own processes tell how far they are: SHA-256.
    token_hash = models.CharField(max_length=64, blank=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("team", "idempotency_key", name="job_key_once", condition=~Q(idempotency_key=""))
        ]
        indexes = [models.Index(fields=["team", "-created_at"], name="job_team_at")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class Attempt(models.Model):
    """One run of a job on its machines. `directory`: below the home of the account that is signed in, the same on each; `marker` is in the environment
    of every process of it, which is how the whole tree is found. Whoever holds `claim` until `claimed_until` takes the next step.
    """

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=JobState, default=JobState.QUEUED)
    marker = models.CharField(max_length=40, unique=True)
    directory = models.CharField(max_length=200)
    why = models.CharField(max_length=40, blank=True)
    # Why it is to end although nobody stops the job: a code of runner.course.ENDS, "" = it is not.
    end_asked = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(default=timezone.now)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint("job", "number", name="attempt_once")]
        indexes = [
            models.Index(fields=["next_at"], name="attempt_due", condition=Q(state__in=OPEN_STATES)),
        ]

    def __str__(self) -> str:
        return f"{self.job} #{self.number}"


class Node(models.Model):
    """One machine of one attempt. `launched_at` is written before the machine hears of it: afterwards it is looked for, never launched blindly again.

    `log_offset`: bytes of its log that are stored or were left out. `reached_at`, `failures`: how reading it goes; a machine that cannot be reached runs on.
    """

    attempt = models.ForeignKey("jobs.Attempt", on_delete=models.CASCADE, related_name="nodes")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="job_nodes")
    rank = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=JobState, default=JobState.QUEUED)
    hold = models.ForeignKey("fleet.Hold", on_delete=models.SET_NULL, null=True, related_name="+")
    address = models.CharField(max_length=330, blank=True, help_text="user@host:port that it was reached by.")
    pid = models.PositiveIntegerField(null=True)
    boot_id = models.CharField(max_length=64, blank=True)
    uploaded_at = models.DateTimeField(null=True)
    # Written before the machine hears of it, as launched_at is.
    install_at = models.DateTimeField(null=True)
    prepared_at = models.DateTimeField(null=True)
    launched_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    term_sent_at = models.DateTimeField(null=True)
    kill_sent_at = models.DateTimeField(null=True)
    log_offset = models.BigIntegerField(default=0)
    log_size = models.BigIntegerField(default=0, help_text="Of the file on the machine, as it was last seen.")
    reached_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=40, blank=True)
    error_detail = models.CharField(max_length=300, blank=True)
    # What was found as it was prepared: {"python", "driver", "torch", …, "warnings": […]}.
    facts = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint("attempt", "rank", name="node_rank_once"),
            models.UniqueConstraint("attempt", "instance", name="node_machine_once"),
        ]

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.attempt}"


class JobEvent(models.Model):
    """Each change: `kind` is a state that was entered, or one of words.EVENTS."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="events")
    attempt = models.ForeignKey("jobs.Attempt", on_delete=models.CASCADE, null=True, related_name="events")
    node = models.ForeignKey("jobs.Node", on_delete=models.CASCADE, null=True, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=24)
    detail = models.CharField(max_length=500, blank=True)
    values = models.JSONField(default=dict)
    by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        indexes = [models.Index(fields=["job", "at"], name="job_event_at")]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"
