"""The kinds of notices in words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import NoticeKind

NOTICES: Mapping[NoticeKind, str | Promise] = {
    NoticeKind.INTERRUPTION: _("The provider takes the machine back"),
    NoticeKind.MAINTENANCE: _("Maintenance by the provider"),
    NoticeKind.RETIREMENT: _("The provider retires the host"),
    NoticeKind.UNPAID: _("Locked or about to be, for want of payment"),
    NoticeKind.OTHER: _("Notice from the provider"),
}
