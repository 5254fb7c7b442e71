"""Where the versions of images and machines are read: from what people typed, agents reported, and saved images carried along."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.versions import Source, Versions, collect
from fleet.inventory.models import EnvironmentReport, Image, Instance


def environment_of(image: Image) -> Environment:
    """Its row, or one that is not saved yet: looking at an image writes nothing."""
    found = Environment.objects.filter(image=image).select_related("typed_by", "edited_by").first()
    return found or Environment(team_id=image.account.team_id, image=image, name=image.name)


def versions_of_images(images: Iterable[Image]) -> dict[int, Versions]:
    """By the image's id, in two queries however many there are."""
    ids = [image.pk for image in images]
    rows = Environment.objects.filter(image__in=ids).select_related("typed_by")
    environments = {row.image_id: row for row in rows}
    reports = newest_reports(ids)
    return {pk: collect(image_sources(environments.get(pk), reports.get(pk))) for pk in ids}


def newest_reports(image_ids: Iterable[int]) -> dict[int, EnvironmentReport]:
    """The newest report of any machine that ran the image, also of one that is gone."""
    rows = (
        EnvironmentReport.objects.filter(instance__image__in=list(image_ids))
        .order_by("instance__image_id", "-reported_at", "-pk")
        .distinct("instance__image_id")
        .select_related("instance")
    )
    return {row.instance.image_id: row for row in rows if row.instance.image_id}


def versions_of(environment: Environment) -> Versions:
    report = newest_reports([environment.image_id]).get(environment.image_id) if environment.image_id else None
    return collect(image_sources(environment, report))


def versions_of_machine(instance: Instance) -> Versions:
    """What its agent found comes first, here: it is about this very machine. Its image fills in what agents do not read."""
    report = newest_report(instance)
    of_image = Environment.objects.filter(image=instance.image_id).select_related("typed_by").first()
    own = [reported(report)] if report else []
    return collect([*own, *(image_sources(of_image, None) if instance.image_id else [])])


def newest_report(instance: Instance) -> EnvironmentReport | None:
    return (
        EnvironmentReport.objects.filter(instance=instance)
        .select_related("instance")
        .order_by("-reported_at", "-pk")
        .first()
    )


def image_sources(environment: Environment | None, report: EnvironmentReport | None) -> list[Source]:
    """What a person typed counts before what a machine says, and that before what came along with the image."""
    found: list[Source] = []
    if environment and environment.typed:
        found.append(Source("typed", environment.typed_at, typist(environment), environment.typed))
    if report:
        found.append(reported(report))
    if environment and environment.carried:
        found.append(Source("carried", environment.carried_at, environment.carried_from, environment.carried))
    return found


def typist(environment: Environment) -> str:
    return environment.typed_by.get_username() if environment.typed_by else ""


def reported(report: EnvironmentReport) -> Source:
    data = report.data if isinstance(report.data, dict) else {}
    return Source("reported", report.reported_at, report.instance.name, data)
