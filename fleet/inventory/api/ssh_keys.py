"""The SSH key of a team over the API: its public half. The private one goes in and never comes out."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.models import SshKey
from fleet.inventory.remote import fingerprint
from fleet.inventory.ssh_keys import MAX_KEY_LENGTH, SshKeyError, set_ssh_key
from fleet.rest.bodies import Body, naming_fields
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

KEY_EXAMPLE = {
    "id": 2,
    "team": "acme",
    "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Gv5cW1Jm5x8kq0c0Q3v2s9H5r6t7u8v9w0x1y2z3A rackrent-acme",
    "fingerprint": "SHA256:EAxlGZ6Xc262BGkqdpx+lCareqkg4Ogygfl28oqF2Lo",
    "created_at": "2026-11-29T18:02:00Z",
}


@extend_schema_serializer(examples=[OpenApiExample("key", KEY_EXAMPLE)])
class SshKeySerializer(serializers.ModelSerializer[SshKey]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    public_key = serializers.CharField(help_text="For authorized_keys of the machines.")
    fingerprint = serializers.SerializerMethodField(help_text="As ssh-keygen -l shows it.")

    class Meta:
        model = SshKey
        fields = list(KEY_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_fingerprint(self, key: SshKey) -> str:
        return fingerprint(key.public_key)


@extend_schema_serializer(examples=[OpenApiExample("a new one", {"private_key": ""})])
class NewSshKey(Body[dict[str, Any]]):
    private_key = serializers.CharField(
        max_length=MAX_KEY_LENGTH,
        allow_blank=True,
        trim_whitespace=False,
        write_only=True,
        help_text="In OpenSSH or PEM form, without a passphrase; kept encrypted. Empty: a new ed25519 key is made.",
    )


class SshKeyViewSet(WritableRows[SshKey]):
    """The key with which machines of a team are reached over SSH, one a team."""

    http_method_names = ["get", "post", "head"]
    queryset = SshKey.objects.select_related("team").defer("private_key")
    serializer_class = SshKeySerializer
    orderings = ("id", "created_at")
    bodies = {"create": NewSshKey}

    def create(self, request: Request) -> Response:
        """Sets the team's key in place of the one that was there. Name the team with `?team=` where you are in several."""
        asked = self.body(request)
        team = one_team(request, role=Role.OPERATOR)
        with naming_fields(SshKeyError):
            key = set_ssh_key(actor=self.actor(request), team=team, private_key=asked["private_key"])
        return self.answer(key, status.HTTP_201_CREATED)
