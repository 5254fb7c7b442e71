"""Runways as pages draw them: bars on one scale, and the finding above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.alerts.places import provider_name
from fleet.costs.balances.models import BalanceSource
from fleet.costs.balances.shown import Runway
from fleet.formats import amounts_text, money_text

# A full bar, in hours, unless what is shown lasts for less.
FULL_HOURS = 168


@dataclass(frozen=True, slots=True)
class Line:
    runway: Runway

    @property
    def name(self) -> str:
        provider, account = provider_name(self.runway.account), self.runway.account.name
        return account if provider == account else f"{provider}, {account}"

    @property
    def rate_words(self) -> str:
        one = self.runway
        if one.lasts is None:
            return _("never read")
        left, rate = money_text(one.lasts.left, one.currency), money_text(one.burn_per_hour, one.currency)
        return _("%(left)s, %(rate)s/h") % {"left": left, "rate": rate}

    @property
    def lasts_words(self) -> str:
        found = self.runway.lasts
        if found is None:
            return ""
        if found.left <= 0:
            return _("nothing left")
        if found.hours is None or found.ends_at is None:
            return _("nothing known is charged") if not self.runway.burn_per_hour else _("for years")
        said = {"n": int(found.hours), "at": date_format(timezone.localtime(found.ends_at), "D j M H:i")}
        return (_("at most %(n)d h, until %(at)s") if self.runway.is_at_most else _("%(n)d h, until %(at)s")) % said

    @property
    def notes(self) -> list[str]:
        """What else is to be said of it, the most pressing first."""
        return [
            text for text in (self._error(), self._unknown(), self._without_idle(), self._typed(), self._zero()) if text
        ]

    def _error(self) -> str:
        one = self.runway
        if not one.error or one.failed_at is None:
            return ""
        at = date_format(timezone.localtime(one.failed_at), "Y-m-d H:i")
        return _("It could not be read at %(at)s: %(error)s") % {"at": at, "error": one.error}

    def _unknown(self) -> str:
        one, parts = self.runway, []
        if one.unpriced:
            text = ngettext(
                "the price of %(n)d machine is not known", "the prices of %(n)d machines are not known", one.unpriced
            )
            parts.append(text % {"n": one.unpriced})
        if one.others:
            parts.append(_("%(amounts)s an hour have no exchange rate") % {"amounts": amounts_text(one.others)})
        return _("It ends sooner: %(parts)s.") % {"parts": ", ".join(parts)} if parts else ""

    def _without_idle(self) -> str:
        one = self.runway
        if one.lasts is None or one.lasts.left <= 0:
            return ""
        if not one.idle_per_hour:
            return _("nothing known idle here")
        if one.without_idle_hours is None:
            return _("without its idle machines nothing is charged")
        return _("without its idle machines: %(n)d h") % {"n": int(one.without_idle_hours)}

    def _typed(self) -> str:
        one = self.runway
        if one.source != BalanceSource.TYPED or one.balance is None or one.read_at is None:
            return ""
        said = {
            "amount": money_text(one.balance, one.currency),
            "at": date_format(timezone.localtime(one.read_at), "Y-m-d H:i"),
        }
        return _("typed: %(amount)s at %(at)s, counted down by the ledger") % said

    def _zero(self) -> str:
        return _("At zero: %(what)s.") % {"what": self.runway.zero_balance} if self.runway.zero_balance else ""

    @property
    def is_low(self) -> bool:
        return bool(self.runway.severity())

    def width(self, full_hours: int) -> float:
        hours = self.runway.hours_left
        return (
            100.0
            if hours is None and self.runway.lasts
            else float(min((hours or Decimal(0)) / full_hours, Decimal(1)) * 100)
        )

    def due_width(self, full_hours: int) -> float:
        """What stopping the idle machines adds."""
        hours = self.runway.without_idle_hours
        if hours is None:
            return 0.0
        return float(min(hours / full_hours, Decimal(1)) * 100) - self.width(full_hours)


@dataclass(frozen=True, slots=True)
class Drawn:
    """All of them on one scale."""

    lines: list[Line]
    full_hours: int

    @classmethod
    def of(cls, runways: Sequence[Runway]) -> Drawn:
        longest = max((one.hours_left for one in runways if one.hours_left is not None), default=Decimal(0))
        return cls([Line(one) for one in runways], min(FULL_HOURS, max(24, int(longest) + 1)))

    @property
    def bars(self) -> list[tuple[Line, float, float]]:
        return [(line, line.width(self.full_hours), line.due_width(self.full_hours)) for line in self.lines]

    @property
    def headline(self) -> str:
        """The finding, in a sentence without a full stop."""
        ending = [line for line in self.lines if line.runway.hours_left is not None]
        if not self.lines:
            return _("No account is prepaid, as far as anybody told")
        if not ending:
            return _("No credit is known to end")
        if any(line.runway.lasts and line.runway.lasts.left <= 0 for line in ending):
            return _("%(name)s has no credit left") % {"name": ending[0].name}
        if len(self.lines) == 1:
            return _("%(name)s has credit for %(n)d hours") % {
                "name": ending[0].name,
                "n": int(ending[0].runway.hours_left or 0),
            }
        return _("%(name)s credit ends first") % {"name": ending[0].name}
