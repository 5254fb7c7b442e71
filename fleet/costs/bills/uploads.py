"""A file on its way: kept, read, shown, and taken whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction

from fleet.costs.bills.files.reading import About, Sheet, read_bill
from fleet.costs.bills.models import BillSource, BillUpload
from fleet.costs.bills.taking import Found, Taken, found_in_file, preview, take_bill
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor, record
from fleet.teams.fields import one_line
from fleet.teams.models import User


@dataclass(frozen=True, slots=True)
class Previewed:
    """`found`, `taken`: None while there are faults, or nobody knows which column is what."""

    sheet: Sheet
    found: Found | None = None
    taken: Taken | None = None


@transaction.atomic
def keep_upload(
    *, actor: Actor, user: User, account: ProviderAccount, name: str, content: bytes, reading: Mapping[str, Any]
) -> BillUpload:
    made = BillUpload.objects.create(
        team_id=account.team_id,
        account=account,
        file_name=one_line(name)[:200] or "bill.csv",
        content=content,
        reading=dict(reading),
        created_by=user,
    )
    record(actor=actor, team=account.team, action="bill.upload", target=account, new={"bytes": len(content)})
    return made


def assign_columns(*, upload: BillUpload, columns: Mapping[str, str]) -> None:
    upload.reading = {**upload.reading, "columns": dict(columns)}
    upload.save(update_fields=["reading"])


def previewed(upload: BillUpload, *, now: datetime) -> Previewed:
    sheet = sheet_of(bytes(upload.content), upload.account, upload.reading)
    if not sheet.charges:
        return Previewed(sheet)
    found = found_of(sheet, upload, now=now)
    return Previewed(sheet, found, preview(account=upload.account, found=found))


def sheet_of(content: bytes, account: ProviderAccount, reading: Mapping[str, Any]) -> Sheet:
    about = About(account.currency, ZoneInfo(reading.get("time_zone") or "UTC"), reading.get("columns") or {})
    return read_bill(content, about)


def found_of(sheet: Sheet, upload: BillUpload, *, now: datetime) -> Found:
    return found_in_file(
        sheet.charges,
        source=BillSource.FOCUS if sheet.is_focus else BillSource.CSV,
        content=bytes(upload.content),
        file_name=upload.file_name,
        complete=bool(upload.reading.get("complete")),
        now=now,
    )


@transaction.atomic
def take_upload(*, actor: Actor, upload: BillUpload, now: datetime) -> Taken | None:
    """None: another click took it meanwhile, or it has faults. The file itself is not kept."""
    held = BillUpload.objects.select_for_update().select_related("account__team").filter(pk=upload.pk).first()
    if held is None:
        return None
    sheet = sheet_of(bytes(held.content), held.account, held.reading)
    if not sheet.charges:
        return None
    taken = take_bill(actor=actor, account=held.account, found=found_of(sheet, held, now=now), now=now)
    held.delete()
    return taken
