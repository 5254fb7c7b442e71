"""Settings → SSH: the key with which the team's machines are reached."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from fleet.inventory.models import SshKey
from fleet.inventory.remote import fingerprint
from fleet.inventory.ssh_keys import MAX_KEY_LENGTH, SshKeyError, set_ssh_key
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


class OwnKeyForm(forms.Form):
    private_key = forms.CharField(
        label=gettext_lazy("Private key"),
        max_length=MAX_KEY_LENGTH,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy("in OpenSSH or PEM form, without a passphrase; it is kept encrypted and never shown"),
    )


@require_safe
def ssh_key(request: TeamRequest) -> HttpResponse:
    return _draw(request, OwnKeyForm())


@require_POST
@requires(Role.OPERATOR)
def ssh_key_make(request: TeamRequest) -> HttpResponse:
    return _set(request, OwnKeyForm(), "")


@require_POST
@requires(Role.OPERATOR)
def ssh_key_paste(request: TeamRequest) -> HttpResponse:
    form = OwnKeyForm(request.POST)
    if not form.is_valid():
        return _draw(request, form, status=422)
    return _set(request, form, form.cleaned_data["private_key"])


def _set(request: TeamRequest, form: OwnKeyForm, private_key: str) -> HttpResponse:
    try:
        set_ssh_key(actor=Actor.of_page(request), team=request.team, private_key=private_key)
    except SshKeyError as error:
        messages.error(request, str(error.text))
        return _draw(request, form, status=422)
    messages.success(request, _("Set. Machines let it in once its public half stands in their authorized_keys."))
    return redirect("ssh_key", request.team.slug)


def _draw(request: TeamRequest, form: OwnKeyForm, status: int = 200) -> HttpResponse:
    key = SshKey.objects.filter(team=request.team).only("public_key", "created_at", "team").first()
    context: dict[str, Any] = {"nav": "settings", "tab": "ssh", "form": form, "key": key}
    context["fingerprint"] = fingerprint(key.public_key) if key else ""
    context["may_change"] = request.membership.can(Role.OPERATOR)
    return render(request, "inventory/ssh_key.html", context, status=status)
