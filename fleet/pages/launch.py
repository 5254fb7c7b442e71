"""Renting a machine: from an offer, or by its provider's own name. No view waits for the provider."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from fleet.inventory.environments.verdicts import verdict_for
from fleet.inventory.environments.writing import image_of_team
from fleet.inventory.models import Image, ProviderAccount
from fleet.inventory.offers.launch import is_launchable
from fleet.inventory.offers.models import Offer
from fleet.inventory.offers.need import Need
from fleet.inventory.offers.search import facts_of
from fleet.inventory.offers.shown import Check
from fleet.inventory.offers.warnings import warnings_of
from fleet.inventory.offers.words import oversight_text
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.offered import kept_of, offer_of
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.operations.requests import request_launch
from fleet.inventory.plans.gate import blocks_for_page, remedy_words
from fleet.inventory.reach import reach_problem
from fleet.inventory.views.providers import label_of
from fleet.pages.launch_form import LaunchForm, images_of, renting_accounts
from fleet.providers.base import CreateSpec
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.ingest.bundle import install_line

TOKEN_LIFETIME = timedelta(hours=2)
HOURS_PER_DAY, HOURS_PER_MONTH = 24, 730


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def launch(request: TeamRequest) -> HttpResponse:
    offer = offer_or_404(request)
    problem, image = reach_problem(settings.PUBLIC_URL), image_named(request, offer)
    blocks = blocks_for_page(request.team.pk, account_ids=account_ids_of(request, offer))
    chosen = {"image_id": image.external_id, "account": image.account_id, "region": image.region} if image else {}
    form = LaunchForm(
        request.POST if request.method == "POST" else None,
        team=request.team,
        offer=offer,
        may_override=bool(blocks) and request.membership.can(Role.ADMIN),
        initial={"install_agent": problem is None, **chosen},
    )
    if form.is_valid() and (operation := ordered(request, form)):
        return redirect(f"{reverse('operation', args=[request.team.slug, operation.pk])}?follow=1")
    accounts = renting_accounts(request.team)
    context = {
        "nav": "offers",
        "form": form,
        "offer": offer,
        "label": label_of(offer.source.account.kind) if offer and offer.source.account else "",
        "accounts": accounts,
        "images": images_of(accounts, offer),
        "image": image,
        "verdict": verdict_for(image, offer.gpu_model, gpus=offer.gpu_count or 1) if image and offer else None,
        "checks": checks_of(offer),
        "price": price_of(offer),
        "problem": problem,
        "blocks": blocks,
        "remedy": remedy_words(),
    }
    return render(request, "pages/launch.html", context, status=422 if form.errors else 200)


def account_ids_of(request: TeamRequest, offer: Offer | None) -> list[int]:
    """Whose accounts may rent here."""
    if offer is not None and offer.source.account_id is not None:
        return [offer.source.account_id]
    return list(renting_accounts(request.team).values_list("pk", flat=True))


def offer_or_404(request: TeamRequest) -> Offer | None:
    """The offer that the address names; None where it names none. Raises Http404 for one that cannot be rented from here."""
    word = request.GET.get("offer", "")
    if not word:
        return None
    rows = Offer.objects.select_related("source__account", "source__team").filter(source__team=request.team)
    offer = rows.filter(pk=int(word)).first() if word.isdecimal() and len(word) < 19 else None
    if offer is None or not is_launchable(offer):
        raise Http404
    return offer


def image_named(request: TeamRequest, offer: Offer | None) -> Image | None:
    """What the address says to start from; None where it says nothing, or an image that the offer's account does not have."""
    word = request.GET.get("image", "")
    image = image_of_team(request.team, int(word)) if word.isdecimal() and len(word) < 19 else None
    foreign = image and offer and offer.source.account_id != image.account_id
    return None if foreign else image


def ordered(request: TeamRequest, form: LaunchForm) -> Operation | None:
    """None: it was refused, and the form says why. The same form sent twice orders one machine."""
    known = Operation.objects.filter(team=request.team, idempotency_key=form.idempotency_key).first()
    if known is not None:
        return known
    try:
        return order(request, form)
    except Refused as refusal:
        form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
        return None


@transaction.atomic
def order(request: TeamRequest, form: LaunchForm) -> Operation:
    """The token that lets the new machine's agent in is written with the order or not at all. Raises Refused."""
    actor, account, project = Actor.of_page(request), form.chosen_account(), form.cleaned_data["project"]
    install = ""
    if form.cleaned_data["install_agent"]:
        _token, secret = create_enrolment_token(
            actor=actor, team=request.team, project=project, lifetime=TOKEN_LIFETIME
        )
        install = install_line(secret.secret)
    spec = form.spec(install=install)
    return request_launch(
        actor=actor,
        account=account,
        spec=spec,
        offer=offered(form.offer, account, spec),
        project=project,
        override_reason=form.cleaned_data.get("override_reason", ""),
        idempotency_key=form.idempotency_key,
    )


def offered(offer: Offer | None, account: ProviderAccount, spec: CreateSpec) -> dict[str, Any]:
    return kept_of(offer) if offer else offer_of(account, spec)


def checks_of(offer: Offer | None) -> list[Check]:
    """What people overlook, of this offer alone: nothing is known of what it will be used for."""
    if offer is None:
        return []
    return [Check(oversight_text(found), found.known) for found in warnings_of(facts_of(offer), Need())]


@dataclass(frozen=True, slots=True)
class Price:
    hour: Decimal
    day: Decimal
    month: Decimal
    currency: str


def price_of(offer: Offer | None) -> Price | None:
    if offer is None or offer.price_per_hour is None:
        return None
    hour = offer.price_per_hour
    return Price(hour, hour * HOURS_PER_DAY, hour * HOURS_PER_MONTH, offer.currency)
