"""What is rented and from whom: accounts, machines, GPUs, images, holds, and the log of what providers showed."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.inventory.words import BILLINGS, MARKETS, STATES, TENANCIES, choices, reason_words
from fleet.providers.base import Billing, InstanceState, Market, Tenancy

__all__ = [
    "GPU",
    "EnvironmentReport",
    "Hold",
    "HoldKind",
    "Image",
    "Instance",
    "Observation",
    "ProviderAccount",
    "SshHost",
    "SshKey",
]


class ProviderAccount(models.Model):
    """One set of credentials at one provider. `kind` names an adapter of fleet/providers, checked against its registry."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="accounts")
    kind = models.CharField(_("provider"), max_length=40)
    name = models.CharField(_("name"), max_length=80)
    # What the adapter declares as secret lies encrypted in `credentials`; the rest of its fields in `options`.
    credentials = models.BinaryField(default=bytes, blank=True)
    options = models.JSONField(default=dict, blank=True)
    monitor_only = models.BooleanField(_("monitor only"), default=True)
    enabled = models.BooleanField(default=True)
    currency = models.CharField(max_length=3, default="USD")
    external_id = models.CharField(max_length=200, blank=True)
    poll_interval_seconds = models.PositiveIntegerField(_("poll every"), default=60)
    next_poll_at = models.DateTimeField(default=timezone.now, db_index=True)
    # Set while a poll runs; only the poll that set it may write what it found.
    poll_started_at = models.DateTimeField(null=True)
    listed_at = models.DateTimeField(null=True, help_text="When a listing was last complete.")
    failures = models.PositiveIntegerField(default=0, help_text="Failed polls since the last complete one.")
    error_kind = models.CharField(max_length=40, blank=True)
    error_detail = models.CharField(max_length=500, blank=True)
    failed_at = models.DateTimeField(null=True)
    doubted_since = models.DateTimeField(
        null=True, help_text="Lists leave out machines that are most likely still there."
    )
    # What was last seen with another key, the present one cannot deny.
    keyed_at = models.DateTimeField(null=True, help_text="When the key or another field was last changed.")
    # The last check of the credentials: [{"name", "result": "ok" | "warn" | "no", …}], see checks.py.
    check_started_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    check_results = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # A disconnected account keeps its machines and their record, and no credentials.
    disconnected_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "team", "name", name="account_name_once", condition=models.Q(disconnected_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.name


class Image(models.Model):
    """A disk or container image that machines start from, as its provider names it."""

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="images")
    external_id = models.CharField(max_length=300)
    name = models.CharField(max_length=300)
    region = models.CharField(max_length=80, blank=True)
    owned = models.BooleanField(default=True, help_text="False: somebody else's, seen because a machine uses it.")
    size_gb = models.DecimalField(max_digits=12, decimal_places=3, null=True, help_text="NULL: not told.")
    created_at = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint("account", "external_id", name="image_once")]

    def __str__(self) -> str:
        return self.name


class Instance(models.Model):
    """A rented machine. What the provider says is overwritten by each listing; what people say of it never is."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="instances")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="instances")
    external_id = models.CharField(max_length=200)
    region = models.CharField(max_length=80, blank=True)
    name = models.CharField(_("name"), max_length=200)

    state = models.CharField(max_length=16, choices=choices(STATES), default=InstanceState.UNKNOWN)
    raw_state = models.CharField(max_length=80, blank=True)
    state_reason = models.CharField(max_length=300, blank=True)
    state_since = models.DateTimeField(default=timezone.now)
    billing = models.CharField(max_length=16, choices=choices(BILLINGS), default=Billing.UNKNOWN)
    market = models.CharField(max_length=16, choices=choices(MARKETS), default=Market.UNKNOWN)
    tenancy = models.CharField(max_length=16, choices=choices(TENANCIES), default=Tenancy.UNKNOWN)

    instance_type = models.CharField(max_length=120, blank=True)
    gpu_raw = models.CharField(max_length=120, blank=True)
    gpu_model = models.CharField(_("GPU"), max_length=60, blank=True)
    gpu_count = models.PositiveIntegerField(_("GPUs"), null=True, blank=True)
    gpu_memory_mib = models.PositiveIntegerField(null=True, blank=True)
    host_share = models.DecimalField(max_digits=6, decimal_places=5, null=True, blank=True)
    vcpus = models.PositiveIntegerField(_("vCPUs"), null=True, blank=True)
    ram_mib = models.PositiveIntegerField(null=True, blank=True)
    disk_gb = models.PositiveIntegerField(null=True, blank=True)

    # For the whole machine, an hour; NULL = not known, which is not free.
    price_per_hour = models.DecimalField(_("price per hour"), max_digits=14, decimal_places=6, null=True, blank=True)
    storage_price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    currency = models.CharField(max_length=3, default="USD")
    priced_at = models.DateTimeField(null=True)

    image = models.ForeignKey("fleet.Image", on_delete=models.SET_NULL, null=True, related_name="instances")
    image_name = models.CharField(max_length=300, blank=True)
    # [{"host", "port", "user", "kind": "direct" | "proxy", "via": [{"host", "port", "user"}]}]; "via" only where a person typed it.
    ssh = models.JSONField(default=list, blank=True)
    ssh_typed = models.CharField(
        max_length=700,
        blank=True,
        help_text="As people reach it, with jump hosts (remote.parse_way); tried before ssh.",
    )
    provider_created_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    provider_stopped_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    provider_labels = models.JSONField(default=dict, blank=True)
    extra = models.JSONField(default=dict, blank=True)
    rule_version = models.PositiveSmallIntegerField(default=0)

    managed = models.BooleanField(
        default=False, help_text="False: nobody registered it; it is shown and never touched."
    )
    owner = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    project = models.ForeignKey(
        "fleet.Project", on_delete=models.SET_NULL, null=True, blank=True, related_name="instances"
    )
    labels = models.JSONField(default=dict, blank=True)

    first_seen_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)
    probed_at = models.DateTimeField(
        null=True,
        help_text="When it was last read by itself, to prove an operation. A listing from before says nothing newer.",
    )
    missed_listings = models.PositiveSmallIntegerField(default=0)
    doubted_since = models.DateTimeField(
        null=True, help_text="A list left it out together with most others: see missing.py."
    )
    gone_at = models.DateTimeField(null=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint("account", "region", "external_id", name="instance_once")]
        indexes = [models.Index(fields=["team", "gone_at"], name="instance_team_gone")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_unseen(self) -> bool:
        """A launch named it, and no reading has shown it yet."""
        return not self.raw_state and not self.rule_version

    @property
    def is_exclusive(self) -> bool | None:
        """The plain word for tenancy; None where the provider does not say."""
        return Tenancy(self.tenancy).is_exclusive

    @property
    def reason(self) -> str:
        """Why it is in this state, in the reader's language where the reason is ours."""
        return reason_words(self.state_reason)


class GPU(models.Model):
    """One GPU, or one MIG instance of one, of one machine: UUIDs repeat on cloned and rented-again hosts, so the pair is the identity."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="gpus")
    uuid = models.CharField(max_length=96)
    index = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=120, blank=True)
    memory_total_bytes = models.BigIntegerField(null=True)
    pci_bus_id = models.CharField(max_length=32, blank=True)
    mig_parent_uuid = models.CharField(max_length=96, blank=True)
    mig_profile = models.CharField(max_length=40, blank=True)
    first_seen_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True, help_text="When the agent's inventory stopped naming it.")

    class Meta:
        constraints = [models.UniqueConstraint("instance", "uuid", name="gpu_once")]

    def __str__(self) -> str:
        return f"GPU {self.index}"


class HoldKind(models.TextChoices):
    JOB = "job", _("job")
    PERSON = "person", _("person")
    HEARTBEAT = "heartbeat", _("heartbeat")


class Hold(models.Model):
    """Keeps a machine alive. Start and end stay on record: costs split a shared machine by them later."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="holds")
    kind = models.CharField(max_length=16, choices=HoldKind)
    owner = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    # Of a heartbeat that a script sends.
    token = models.ForeignKey("fleet.APIToken", on_delete=models.SET_NULL, null=True, related_name="+")
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(_("until"), null=True, blank=True)
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} on {self.instance}"


class Observation(models.Model):
    """What one listing showed of one machine, written when it differs from the one before. Costs are rebuilt from these rows.

    Append-only, kept 25 months. `rule_version` names the mapping of raw words to ours that was in force.
    """

    instance = models.ForeignKey(
        "fleet.Instance", on_delete=models.CASCADE, db_index=False, related_name="observations"
    )
    seen_at = models.DateTimeField()
    # The last complete listing that still showed the values before: the change lies between the two.
    unchanged_until = models.DateTimeField(null=True)
    listed = models.BooleanField(default=True, help_text="False: the listing was complete and did not name it.")
    raw_state = models.CharField(max_length=80, blank=True)
    state = models.CharField(max_length=16, choices=choices(STATES))
    billing = models.CharField(max_length=16, choices=choices(BILLINGS))
    market = models.CharField(max_length=16, choices=choices(MARKETS), default=Market.UNKNOWN)
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    storage_price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3)
    provider_created_at = models.DateTimeField(null=True)
    provider_started_at = models.DateTimeField(null=True)
    provider_stopped_at = models.DateTimeField(null=True)
    rule_version = models.PositiveSmallIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["instance", "seen_at"], name="observation_instance_at"),
            models.Index(fields=["instance", "id"], name="observation_instance_order"),
            models.Index(fields=["-seen_at"], name="observation_at"),
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.state} at {self.seen_at:%Y-%m-%d %H:%M}"


class EnvironmentReport(models.Model):
    """The software a machine's agent found, one row per change; the newest is what the machine runs now."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="environments")
    reported_at = models.DateTimeField()
    digest = models.CharField(max_length=64)
    data = models.JSONField()

    class Meta:
        indexes = [models.Index(fields=["instance", "-reported_at"], name="environment_instance_at")]

    def __str__(self) -> str:
        return f"{self.instance} at {self.reported_at:%Y-%m-%d %H:%M}"


class SshKey(models.Model):
    """With which a team's machines are reached over SSH. The private half is sealed with CREDENTIAL_KEYS."""

    team = models.OneToOneField("fleet.Team", on_delete=models.CASCADE, related_name="ssh_key")
    public_key = models.TextField()
    private_key = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"SSH key of {self.team}"


class SshHost(models.Model):
    """The host key of one SSH address of a machine: `pinned` by a person, "" = none yet; `offered` if it last showed another one."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="ssh_hosts")
    host = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    pinned = models.TextField(blank=True)
    pinned_at = models.DateTimeField(null=True)
    offered = models.TextField(blank=True)
    offered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "host", "port"], name="ssh_host_once")]

    def __str__(self) -> str:
        return f"{self.host}:{self.port} of {self.instance}"
