"""The observation log as a file: what the ledger is made from (docs/ledger.md)."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header
from rest_framework.request import Request

from fleet.costs.book.export import observation_csv
from fleet.inventory.models import Instance
from fleet.rest.parameters import ids_of, moment_of
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle
from fleet.telemetry.api.metrics import AnyAccept, for_server

MOST_IDS = 200


class ObservationFileView(ApiView):
    """CSV as `manage.py ledger_replay` reads it: of machines and accounts (ids), since and until (times); all of the team without."""

    # The schema describes JSON; this is a file, described in docs/ledger.md.
    schema = None
    content_negotiation_class = AnyAccept
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    known_parameters = ("team", "instance", "account", "since", "until")

    def get(self, request: Request) -> StreamingHttpResponse:
        team = one_team(request)
        machines = Instance.objects.filter(team=team)
        if accounts := ids_of(request, "account", most=MOST_IDS):
            machines = machines.filter(account__in=accounts)
        if instances := ids_of(request, "instance", most=MOST_IDS):
            machines = machines.filter(pk__in=instances)
        since, until = moment_of(request, "since"), moment_of(request, "until")
        lines = (line.encode() for line in observation_csv(machines, since=since, until=until))
        name = content_disposition_header(as_attachment=True, filename=f"observations-{team.slug}.csv")
        answer = StreamingHttpResponse(for_server(request._request, lines), content_type="text/csv")  # noqa: SLF001 - Django's own request; DRF has no public word for it
        answer.headers["Content-Disposition"] = name or "attachment"
        return answer
