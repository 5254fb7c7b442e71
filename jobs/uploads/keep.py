"""Taking uploads, giving their files to a job's machines, and dropping what nobody uses any more."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum
from django.utils.translation import gettext_lazy as _

from fleet.teams.audit import Actor, record
from fleet.teams.fields import one_line
from fleet.teams.models import Team
from jobs.book.models import OPEN_STATES, Job
from jobs.uploads.archive import Packed, pieces, repack
from jobs.uploads.models import JobUpload, JobUploadPart
from jobs.uploads.refusing import MIB, UploadRefused

PART_BYTES = MIB
# Of a team: packed, and since it was last used.
TEAM_BYTES = 2048 * MIB
KEPT = timedelta(days=30)


def keep_upload(*, actor: Actor, team: Team, name: str, file: IO[bytes], size_bytes: int, now: datetime) -> JobUpload:
    """The upload; the same file under the same name again is the same upload. `file` is at its begin. Raises UploadRefused."""
    cap = settings.JOB_UPLOAD_CAP_BYTES
    if size_bytes > cap:
        text = _("At most %(n)d MiB: put data on the machines another way, or the code into a repository.")
        raise UploadRefused(text % {"n": cap // MIB})
    name, digest = one_line(name)[:200], _digest(file)
    if known := _again(team, name, digest, now):
        return known
    packed = repack(file, name, mtime=int(now.timestamp()))
    with packed.file:
        if packed.packed_bytes > cap:
            raise UploadRefused(_("Packed as tar.gz it is more than %(n)d MiB.") % {"n": cap // MIB})
        return _store(actor=actor, team=team, name=name, digest=digest, size_bytes=size_bytes, packed=packed, now=now)


@transaction.atomic
def _store(
    *, actor: Actor, team: Team, name: str, digest: str, size_bytes: int, packed: Packed, now: datetime
) -> JobUpload:
    # One at a time of a team: the sum would be wrong otherwise, and the same file would be stored twice.
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    if known := _again(team, name, digest, now):
        return known
    stored = JobUpload.objects.filter(team=team, dropped_at=None).aggregate(sum=Sum("packed_bytes"))["sum"] or 0
    if stored + packed.packed_bytes > TEAM_BYTES:
        raise UploadRefused(_("The uploads of this team take %(n)d MiB already: drop some.") % {"n": stored // MIB})
    upload = JobUpload.objects.create(
        team=team,
        name=name,
        sha256=digest,
        size_bytes=size_bytes,
        packed_bytes=packed.packed_bytes,
        unpacked_bytes=packed.unpacked_bytes,
        file_count=packed.file_count,
        created_by=actor.user,
        created_label=actor.label[:200],
        created_at=now,
        used_at=now,
    )
    for number, data in enumerate(pieces(packed.file, PART_BYTES)):
        JobUploadPart.objects.create(upload=upload, number=number, data=data)
    record(actor=actor, team=team, action="job_upload.create", target=upload, new={"name": name, "sha256": digest})
    return upload


def _again(team: Team, name: str, digest: str, now: datetime) -> JobUpload | None:
    known = JobUpload.objects.filter(team=team, name=name, sha256=digest, dropped_at=None).first()
    if known is not None:
        JobUpload.objects.filter(pk=known.pk).update(used_at=now)
        known.used_at = now
    return known


def _digest(file: IO[bytes]) -> str:
    made = hashlib.sha256()
    for piece in pieces(file, PART_BYTES):
        made.update(piece)
    file.seek(0)
    return made.hexdigest()


def packed_files(job: Job) -> bytes:
    """What each of its machines unpacks where the command runs; empty: nothing was sent for it."""
    if job.upload_id is None:
        return b""
    parts = JobUploadPart.objects.filter(upload=job.upload_id).order_by("number")
    return b"".join(bytes(data) for data in parts.values_list("data", flat=True).iterator(chunk_size=8))


@transaction.atomic
def drop_upload(*, actor: Actor, upload: JobUpload, now: datetime) -> bool:
    """False where a job that goes on needs it. To drop it again is no error."""
    if JobUpload.objects.select_for_update().get(pk=upload.pk).dropped_at is not None:
        return True
    if Job.objects.filter(upload=upload, state__in=OPEN_STATES).exists():
        return False
    _drop(upload, now)
    record(actor=actor, team=upload.team, action="job_upload.drop", target=upload, old={"name": upload.name})
    return True


def prune_uploads(*, now: datetime) -> int:
    """Those that no job has used for long. Returns how many went."""
    in_use = Q(jobs__state__in=OPEN_STATES) | Q(jobs__created_at__gte=now - KEPT)
    old = JobUpload.objects.filter(used_at__lt=now - KEPT, dropped_at=None)
    ids = list(old.exclude(pk__in=JobUpload.objects.filter(in_use).values("pk")).values_list("pk", flat=True))
    for upload in JobUpload.objects.filter(pk__in=ids).select_related("team"):
        drop_upload(actor=Actor.system("jobs"), upload=upload, now=now)
    return len(ids)


def _drop(upload: JobUpload, now: datetime) -> None:
    JobUploadPart.objects.filter(upload=upload).delete()
    JobUpload.objects.filter(pk=upload.pk).update(dropped_at=now)
    upload.dropped_at = now
