"""The list of everything that machines start from: images that providers list, images that were saved, and the team's templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload
from urllib.parse import urlencode

from django.db.models import Prefetch, Q, QuerySet
from django.urls import NoReverseMatch, reverse

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import image_sources, versions_of_images
from fleet.inventory.environments.verdicts import Place, Verdict, judge
from fleet.inventory.environments.versions import Versions, collect
from fleet.inventory.models import Image, Instance, ProviderAccount
from fleet.teams.models import Team

Thing = Image | Environment


@dataclass(frozen=True, slots=True)
class Wanted:
    """`origin`: own, provider, template, or "" for all of them."""

    account: ProviderAccount | None = None
    origin: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    thing: Thing
    origin: str
    environment: Environment | None
    versions: Versions
    verdict: Verdict | None
    launch_url: str | None

    @property
    def image(self) -> Image | None:
        return self.thing if isinstance(self.thing, Image) else None


class Things(Sequence[Thing]):
    """Templates and then images, as one sequence for a paginator: nothing is read but the page and two counts."""

    def __init__(self, templates: QuerySet[Environment], images: QuerySet[Image]) -> None:
        self.templates, self.images = templates, images
        self.template_count, self.image_count = templates.count(), images.count()

    def __len__(self) -> int:
        return self.template_count + self.image_count

    @overload
    def __getitem__(self, wanted: int) -> Thing: ...
    @overload
    def __getitem__(self, wanted: slice) -> list[Thing]: ...
    def __getitem__(self, wanted: int | slice) -> Thing | list[Thing]:
        if isinstance(wanted, int):
            return self[wanted : wanted + 1][0]
        start, stop = wanted.start or 0, wanted.stop or 0
        first: list[Thing] = list(self.templates[start:stop]) if start < self.template_count else []
        begin, end = max(start - self.template_count, 0), max(stop - self.template_count, 0)
        return [*first, *self.images[begin:end]]


def things_of(team: Team, wanted: Wanted) -> Things:
    return Things(templates_of(team, wanted), images_of(team, wanted))


def templates_of(team: Team, wanted: Wanted) -> QuerySet[Environment]:
    rows = Environment.objects.filter(team=team, image=None).select_related("typed_by").order_by("name", "pk")
    if wanted.account or wanted.origin not in ("", "template"):
        return rows.none()
    return rows.filter(Q(name__icontains=wanted.text) | Q(reference__icontains=wanted.text)) if wanted.text else rows


def images_of(team: Team, wanted: Wanted) -> QuerySet[Image]:
    """A deleted image stays for as long as a machine runs from it."""
    used = Prefetch("instances", Instance.objects.filter(gone_at=None).order_by("name"), to_attr="users")
    rows = (
        Image.objects.filter(Q(gone_at=None) | Q(instances__gone_at=None, instances__isnull=False))
        .filter(account__team=team, account__disconnected_at=None)
        .select_related("account__team", "environment")
        .prefetch_related(used)
        .order_by("account__name", "name", "pk")
        .distinct()
    )
    if wanted.origin:
        owned = {"own": True, "provider": False}.get(wanted.origin)
        rows = rows.none() if owned is None else rows.filter(owned=owned)
    if wanted.account:
        rows = rows.filter(account=wanted.account)
    if wanted.text:
        rows = rows.filter(Q(name__icontains=wanted.text) | Q(external_id__icontains=wanted.text))
    return rows


def rows_of(things: Sequence[Thing], place: Place | None) -> list[Row]:
    known = versions_of_images([thing for thing in things if isinstance(thing, Image)])
    return [row_of(thing, known, place) for thing in things]


def row_of(thing: Thing, known: dict[int, Versions], place: Place | None) -> Row:
    if isinstance(thing, Image):
        versions, environment = known[thing.pk], getattr(thing, "environment", None)
        origin = "own" if thing.owned else "provider"
    else:
        versions, environment, origin = collect(image_sources(thing, None)), thing, "template"
    verdict = judge(versions, place) if place else None
    return Row(thing, origin, environment, versions, verdict, launch_url(thing))


def launch_url(thing: Thing) -> str | None:
    """The form that launches a machine from an image; None for what no provider can start."""
    if not isinstance(thing, Image) or thing.gone_at:
        return None
    try:
        address = reverse("launch", args=[thing.account.team.slug])
    except NoReverseMatch:
        return None
    return f"{address}?{urlencode({'image': thing.pk})}"


def accounts_with_images(team: Team) -> list[ProviderAccount]:
    rows = ProviderAccount.objects.filter(team=team, disconnected_at=None, images__isnull=False)
    return list(rows.distinct().order_by("name"))


def chosen(rows: Sequence[Any], pk: str) -> Any:
    return next((row for row in rows if str(row.pk) == pk), None)
