"""Who wants the monthly report, and who got which: a row is claimed before its mail goes out, so that it goes out once."""

from __future__ import annotations

from django.db import models

__all__ = ["CostReportMail", "CostReportWish"]


class CostReportWish(models.Model):
    """What somebody chose. Without a row, admins get the report and others do not."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("fleet.User", on_delete=models.CASCADE, related_name="+")
    wants = models.BooleanField()

    class Meta:
        db_table = "cost_report_wish"
        constraints = [models.UniqueConstraint("team", "user", name="cost_report_wish_once")]

    def __str__(self) -> str:
        return f"{self.user_id} of {self.team_id}: {self.wants}"


class CostReportMail(models.Model):
    """One person's report of one month. `sent_at` NULL without an `error`: a sender has it, or ended in the middle of it.

    `error`: a code of fleet/alerts/channels/words.py; with `retry_at` it is tried again then, without it no more.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    month = models.DateField()
    user = models.ForeignKey("fleet.User", on_delete=models.CASCADE, related_name="+")
    claimed_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=1)
    sent_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=40, blank=True)
    retry_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "cost_report_mail"
        constraints = [models.UniqueConstraint("team", "month", "user", name="cost_report_mail_once")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m} of {self.team_id} for {self.user_id}"
