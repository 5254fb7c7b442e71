"""The planner over the API: the input in the body, the whole plan in the answer."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle
from planner.web.answer import answer
from planner.web.inputs import PlanInput
from planner.web.options import written
from planner.web.schema import EXAMPLE_INPUT, PlanAnswer, example


class PlanView(ApiView):
    """Plan a training run or a server: what to rent, how to split it, what it takes and what it costs. Nothing is kept."""

    changes_nothing = True
    serializer_class = PlanAnswer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)

    @extend_schema(
        request=PlanInput,
        examples=[
            OpenApiExample("all weights on H100", EXAMPLE_INPUT, request_only=True),
            OpenApiExample("its plan", example(), response_only=True),
        ],
    )
    def post(self, request: Request) -> Response:
        asked = PlanInput(data=request.data)
        asked.is_valid(raise_exception=True)
        return Response(written(answer(asked.validated_data)))
