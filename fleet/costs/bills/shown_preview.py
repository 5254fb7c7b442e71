"""What a preview shows of a file: sums, the first lines, the faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.costs.bills.uploads import Previewed
from fleet.costs.bills.words import CHARGE_KINDS
from fleet.formats import amounts_text

SHOWN = 20
LAYOUTS: Mapping[str, str | Promise] = {
    "focus": _("FOCUS"),
    "own": _("columns of Rackrent"),
    "assigned": _("columns as assigned"),
    "digitalocean": _("an invoice of DigitalOcean"),
    "aws_report": _("a Cost and Usage Report of AWS"),
}


def told_preview(seen: Previewed) -> dict[str, Any]:
    sheet = seen.sheet
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for charge in sheet.charges:
        sums[charge.amount.currency] += charge.amount.amount
    return {
        "sheet": sheet,
        "layout": LAYOUTS.get(sheet.layout, ""),
        "found": seen.found,
        "taken": seen.taken,
        "total": amounts_text(sums),
        "faults": sheet.faults[:SHOWN],
        "sample": [{"charge": charge, "kind": CHARGE_KINDS[charge.kind]} for charge in sheet.charges[:SHOWN]],
    }
