"""Files that people send for their jobs. They lie in the database: it is the one place that web process and workers share wherever they run."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

__all__ = ["JobUpload", "JobUploadPart"]


class JobUpload(models.Model):
    """A file, or the files of an archive, packed anew by us as a gzipped tar of plain files and folders (archive.repack).

    `sha256`: of what was sent. The row outlives its data: `dropped_at` says when that went.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="job_uploads")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField(help_text="As it was sent.")
    packed_bytes = models.BigIntegerField()
    unpacked_bytes = models.BigIntegerField()
    file_count = models.PositiveIntegerField()
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_label = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now)
    dropped_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "team", "sha256", "name", name="job_upload_once", condition=models.Q(dropped_at=None)
            )
        ]

    def __str__(self) -> str:
        return self.name


class JobUploadPart(models.Model):
    """PART_BYTES of the packed files, so that no row is large."""

    upload = models.ForeignKey("jobs.JobUpload", on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint("upload", "number", name="job_upload_part_once")]
