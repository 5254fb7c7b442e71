"""A policy as one plain sentence, and what else it does."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.dates import WEEKDAYS
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from fleet.formats import duration_text
from fleet.idle.policies.covering import window_of
from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom, UseMode
from fleet.idle.policies.places import country_words
from fleet.inventory.words import TENANCIES
from fleet.providers.base import Tenancy
from fleet.providers.registry import adapters

WORKWEEK = [0, 1, 2, 3, 4]
QUIET: dict[str, str | Promise] = {
    UseMode.INTERACTIVE: gettext_lazy("%(machines)s idle for %(time)s"),
    UseMode.BATCH: gettext_lazy("%(machines)s without work or a heartbeat for %(time)s"),
    UseMode.SERVING: gettext_lazy("%(machines)s without a request for %(time)s"),
}
DONE: dict[str, str | Promise] = {
    IdleAction.ALERT: gettext_lazy("%(quiet)s are told of, and go on running"),
    IdleAction.STOP: gettext_lazy("%(quiet)s are stopped %(grace)s after a warning"),
    IdleAction.TERMINATE: gettext_lazy("%(quiet)s are terminated %(grace)s after a warning"),
}


def sentence(policy: IdlePolicy, left_out: int | None = None) -> str:
    """As in "Machines of Vision idle for 1 h are stopped 30 min after a warning, outside 09:00–18:00 on workdays in Germany."

    `left_out`: how many machines it excludes, of one that is not saved.
    """
    machines = machines_words(policy, len(policy.excluded.all()) if left_out is None else left_out)
    if policy.mode == UseMode.PINNED:
        return _("%(machines)s are never idle.") % {"machines": machines}
    quiet = QUIET[policy.mode] % {"machines": machines, "time": duration_text(window_of(policy).total_seconds())}  # fmt: skip
    done = DONE[policy.action] % {"quiet": quiet, "grace": duration_text(policy.grace_minutes * 60)}
    if policy.action == IdleAction.ALERT or not (office := office_words(policy)):
        return _("%(done)s.") % {"done": done}
    return _("%(done)s, outside %(office)s.") % {"done": done, "office": office}


def machines_words(policy: IdlePolicy, left_out: int) -> str:
    parts = list(_scope(policy))
    said = {"parts": pgettext("list", ", ").join(parts), "n": left_out}
    if not left_out:
        return _("Machines %(parts)s") % said if parts else _("Machines")
    if parts:
        return ngettext("Machines %(parts)s, except %(n)d,", "Machines %(parts)s, except %(n)d,", left_out) % said
    return ngettext("All machines except %(n)d", "All machines except %(n)d", left_out) % said


def _scope(policy: IdlePolicy) -> Iterator[str]:
    if policy.project is not None:
        yield _("of %(name)s") % {"name": policy.project.name}
    if policy.account is not None:
        yield _("of the account %(name)s") % {"name": policy.account.name}
    if policy.provider:
        adapter = adapters().get(policy.provider)
        yield _("at %(name)s") % {"name": adapter.label if adapter else policy.provider}
    if policy.tenancy:
        yield _("with the tenancy “%(tenancy)s”") % {"tenancy": TENANCIES[Tenancy(policy.tenancy)]}
    if policy.label_name:
        label = f"{policy.label_name}={policy.label_value}" if policy.label_value else policy.label_name
        yield _("labelled %(label)s") % {"label": label}


def office_words(policy: IdlePolicy) -> str:
    """As in "09:00–18:00 on workdays in Germany"; "" without office hours."""
    if not policy.office_days or policy.office_from is None or policy.office_until is None:
        return ""
    said = {
        "from": f"{policy.office_from:%H:%M}",
        "until": f"{policy.office_until:%H:%M}",
        "days": _days(policy),
        "zone": policy.time_zone,
    }
    return (_("%(from)s–%(until)s (%(zone)s) %(days)s") if policy.time_zone else _("%(from)s–%(until)s %(days)s")) % said  # fmt: skip


def _days(policy: IdlePolicy) -> str:
    days, place = sorted(policy.office_days), country_words(policy.holidays) if policy.holidays else ""
    if days == WORKWEEK:
        return _("on workdays in %(place)s") % {"place": place} if place else _("from Monday to Friday")
    names = pgettext("list", ", ").join(str(WEEKDAYS[day]) for day in days)
    names = _("every day") if len(days) == len(WEEKDAYS) else _("on %(days)s") % {"days": names}
    return _("%(days)s that is no holiday in %(place)s") % {"days": names, "place": place} if place else names


def window_words(policy: IdlePolicy) -> str:
    """What history has to do with its window; "" where it is fixed."""
    if policy.window_from != IdleWindowFrom.RECOMMENDED:
        return ""
    if policy.recommended_minutes is None:
        return _("History recommends no time yet: until it does, nothing is stopped.")
    return _("The time is what history recommends.")


def more_words(policy: IdlePolicy) -> list[str]:
    """What it does beside its sentence, one short sentence each."""
    return [str(text) for text in (*_stop_words(policy), window_words(policy), *_age_words(policy)) if text]


def _stop_words(policy: IdlePolicy) -> Iterator[str]:
    if policy.action == IdleAction.ALERT or policy.mode == UseMode.PINNED:
        return
    if policy.warn_minutes:
        minutes = pgettext("list", ", ").join(str(one) for one in policy.warn_minutes)
        yield _("Reminded again %(minutes)s min before.") % {"minutes": minutes}
    if policy.action == IdleAction.STOP:
        yield _("Also where a stop loses data.") if policy.accept_loss else _("Where a stop would lose data, it only tells.")  # fmt: skip
    if policy.stop_without_hook:
        yield _("Also where the machine's own preparation fails.")


def _age_words(policy: IdlePolicy) -> Iterator[str]:
    if policy.max_age_hours is not None:
        yield _("No machine runs longer than %(time)s without a person's word.") % {"time": duration_text(policy.max_age_hours * 3600)}  # fmt: skip
    if policy.delete_after_days is not None:
        days = ngettext("%(n)d day", "%(n)d days", policy.delete_after_days) % {"n": policy.delete_after_days}
        if policy.delete_consent_at is None:
            yield _("Would delete machines %(days)s after their stop: nobody has agreed to it, so nothing is deleted.") % {"days": days}  # fmt: skip
        else:
            yield _("Machines are deleted, disks and all, %(days)s after their stop.") % {"days": days}
