"""The way of a file: chosen, read and shown, its columns assigned where nobody knows them, taken."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.costs.bills.files.columns import OURS
from fleet.costs.bills.forms import BillForm, ColumnsForm
from fleet.costs.bills.models import BillUpload
from fleet.costs.bills.shown_preview import told_preview
from fleet.costs.bills.uploads import Previewed, assign_columns, keep_upload, previewed, take_upload
from fleet.costs.bills.views import frame
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def bill_import(request: TeamRequest) -> HttpResponse:
    posted = request.method == "POST"
    form = BillForm(request.POST if posted else None, request.FILES if posted else None, team=request.team)
    if not posted or not form.is_valid():
        context = {**frame(request), "form": form, "ours": OURS}
        return render(request, "costs/bill_import.html", context, status=422 if posted else 200)
    file = form.cleaned_data["file"]
    upload = keep_upload(
        actor=Actor.of_page(request),
        user=request.user,
        account=form.cleaned_data["account"],
        name=file.name,
        content=file.read(),
        reading=form.reading(),
    )
    return redirect("bill_preview", request.team.slug, upload.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def bill_preview(request: TeamRequest, pk: int) -> HttpResponse:
    """`step`: "assign" the columns, or "take" what is shown."""
    upload = get_object_or_404(BillUpload.objects.select_related("account__team"), pk=pk, team=request.team)
    step = request.POST.get("step") if request.method == "POST" else ""
    if step == "take":
        return taken(request, upload)
    if step == "assign":
        columns = previewed(upload, now=timezone.now()).sheet.columns
        form = ColumnsForm(request.POST, columns=columns, assigned={})
        if not form.is_valid():
            return draw(request, upload, form=form)
        assign_columns(upload=upload, columns=form.assigned())
        return redirect("bill_preview", request.team.slug, upload.pk)
    return draw(request, upload)


def taken(request: TeamRequest, upload: BillUpload) -> HttpResponse:
    done = take_upload(actor=Actor.of_page(request), upload=upload, now=timezone.now())
    if done is None:
        messages.error(request, _("Nothing was imported: the file has faults, or was taken already."))
    elif done.again:
        messages.success(request, _("This very bill is here already; nothing changed."))
    else:
        text = _("Imported: %(new)d new lines, %(changed)d that say something new, %(dropped)d that no longer count.")
        figures = {"new": done.new, "changed": done.changed, "dropped": done.dropped}
        messages.success(request, text % figures + " " + _("It is being compared."))
    return redirect("bills", request.team.slug)


def draw(request: TeamRequest, upload: BillUpload, *, form: ColumnsForm | None = None) -> HttpResponse:
    seen: Previewed = previewed(upload, now=timezone.now())
    assigned = upload.reading.get("columns") or {}
    may_assign = seen.sheet.columns and seen.sheet.layout in {"", "assigned"}
    context = {
        **frame(request),
        **told_preview(seen),
        "upload": upload,
        "form": form or (ColumnsForm(None, columns=seen.sheet.columns, assigned=assigned) if may_assign else None),
    }
    wrong = bool(form and form.errors) or bool(seen.sheet.faults)
    return render(request, "costs/bill_preview.html", context, status=422 if wrong else 200)
