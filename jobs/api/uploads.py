"""Files for jobs over the API: sent once, named by a job as often as it is run."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.rest.bodies import Body
from fleet.rest.filters import FlagFilter
from fleet.rest.problems import NamedProblem
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows
from jobs.uploads.keep import drop_upload, keep_upload
from jobs.uploads.models import JobUpload
from jobs.uploads.refusing import UploadRefused

UPLOAD_EXAMPLE = {
    "id": 5,
    "team": "acme",
    "name": "train.tar.gz",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "size_bytes": 48213,
    "packed_bytes": 48544,
    "unpacked_bytes": 201883,
    "file_count": 14,
    "created_by": "bob",
    "created_at": "2026-11-30T08:00:30Z",
    "used_at": "2026-11-30T08:00:30Z",
    "dropped_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("upload", UPLOAD_EXAMPLE)])
class JobUploadSerializer(serializers.ModelSerializer[JobUpload]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    sha256 = serializers.CharField(help_text="Of the file as it was sent.")
    packed_bytes = serializers.IntegerField(help_text="As it is kept and sent to machines.")
    unpacked_bytes = serializers.IntegerField(help_text="Of its files.")
    file_count = serializers.IntegerField(help_text="Of files and folders.")
    created_by = serializers.CharField(source="created_label", help_text="A user name or a token.")
    used_at = serializers.DateTimeField(help_text="When it was sent last; it is dropped 30 days after its last use.")
    dropped_at = serializers.DateTimeField(allow_null=True, help_text="Its files are not kept any more.")

    class Meta:
        model = JobUpload
        fields = list(UPLOAD_EXAMPLE)


@extend_schema_serializer(
    examples=[OpenApiExample("an archive", {"file": "(the file)"}, media_type="multipart/form-data")]
)
class NewUpload(Body[dict[str, Any]]):
    file = serializers.FileField(
        max_length=200,
        allow_empty_file=True,
        help_text="A .tar, .tar.gz, .tgz or .zip is unpacked; any other file is kept as it is.",
    )


class JobUploadFilter(django_filters.FilterSet):
    sha256 = django_filters.CharFilter(max_length=64, help_text="Of the file as it was sent.")
    kept = FlagFilter("dropped_at", "isnull", help_text="Whether its files are there.")


class JobUploadViewSet(WritableRows[JobUpload]):
    """Files that were sent for jobs: each machine of a job that names one unpacks it where its command runs."""

    http_method_names = ["get", "post", "delete", "head"]
    parser_classes = (MultiPartParser,)
    # The same file under the same name is the same row; a whole file is no fingerprint of a request.
    is_once_by_itself = True
    queryset = JobUpload.objects.select_related("team")
    serializer_class = JobUploadSerializer
    filterset_class = JobUploadFilter
    orderings = ("-created_at", "id")
    bodies = {"create": NewUpload}

    def create(self, request: Request) -> Response:
        """Sends a file. The same again, under the same name, answers the row that is there."""
        file: UploadedFile[Any] = self.body(request)["file"]
        team = one_team(request, role=Role.OPERATOR)
        assert file.file is not None
        try:
            upload = keep_upload(
                actor=self.actor(request),
                team=team,
                name=file.name or "",
                file=file.file,
                size_bytes=file.size or 0,
                now=timezone.now(),
            )
        except UploadRefused as refusal:
            raise ValidationError({"file": str(refusal)}) from None
        return self.answer(upload, status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Drops its files; the row stays, for the jobs that had them. A job that goes on keeps them: 409."""
        if not drop_upload(actor=self.actor(request), upload=self.get_object(), now=timezone.now()):
            raise NamedProblem(
                _("A job that has not ended needs it."), code="in_use", status_code=status.HTTP_409_CONFLICT, field=None
            )
        return Response(status=status.HTTP_204_NO_CONTENT)
