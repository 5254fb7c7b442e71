"""Logs of jobs in compressed chunks."""

from __future__ import annotations

from django.db import models

__all__ = ["LogChunk"]


class LogChunk(models.Model):
    """Whole lines of one node's log, [offset, offset + size_bytes) of the file on its machine, compressed with zlib.

    `first_line`: number of its first line, from 1. A gap in offsets is what a chatty job wrote beyond its cap; `left_out_bytes` before this chunk.
    """

    node = models.ForeignKey("jobs.Node", on_delete=models.CASCADE, related_name="chunks")
    offset = models.BigIntegerField()
    size_bytes = models.PositiveIntegerField()
    first_line = models.BigIntegerField()
    lines = models.PositiveIntegerField()
    read_at = models.DateTimeField()
    left_out_bytes = models.BigIntegerField(default=0)
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint("node", "offset", name="log_chunk_once")]
        indexes = [models.Index(fields=["node", "first_line"], name="log_chunk_line")]
