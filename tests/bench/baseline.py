"""The plain way to take samples: a serializer, bulk_create, TokenAuthentication. It keeps no latest values and pushes nothing."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.bench.baseline_settings")
application = get_asgi_application()

from django.urls import path  # noqa: E402
from rest_framework import serializers  # noqa: E402
from rest_framework.authentication import TokenAuthentication  # noqa: E402
from rest_framework.permissions import IsAuthenticated  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from fleet.telemetry.models import GpuSample, HostSample  # noqa: E402
from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS  # noqa: E402


class GpuSerializer(serializers.ModelSerializer[GpuSample]):
    gpu_id = serializers.IntegerField()

    class Meta:
        model = GpuSample
        fields = ["gpu_id", "sampled_at", *GPU_COLUMNS]


class HostSerializer(serializers.ModelSerializer[HostSample]):
    instance_id = serializers.IntegerField()

    class Meta:
        model = HostSample
        fields = ["instance_id", "sampled_at", *HOST_COLUMNS]


class BatchSerializer(serializers.Serializer[Any]):
    gpus = GpuSerializer(many=True)
    hosts = HostSerializer(many=True)


class Samples(APIView):
    authentication_classes = (TokenAuthentication,)
    permission_classes = (IsAuthenticated,)

    def post(self, request: Request) -> Response:
        serializer = BatchSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        batch = serializer.validated_data
        GpuSample.objects.bulk_create([GpuSample(**row) for row in batch["gpus"]], ignore_conflicts=True)
        HostSample.objects.bulk_create([HostSample(**row) for row in batch["hosts"]], ignore_conflicts=True)
        return Response({"accepted": len(batch["gpus"]) + len(batch["hosts"])})


urlpatterns = [path("samples/", Samples.as_view())]
