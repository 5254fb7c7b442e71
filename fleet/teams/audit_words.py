"""How the audit log reads on a page. The database, the API and the CSV keep the plain names, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from fleet.formats import duration_text
from fleet.teams.actor_words import actor_text
from fleet.teams.models import AuditEntry, Role, Scope

Words = Mapping[str, str | Promise]

ACTIONS: Words = {
    "account.create": _("Provider connected"),
    "account.disconnect": _("Provider disconnected"),
    "account.listing": _("Machines found or gone"),
    "account.pause": _("Provider no longer read"),
    "account.resume": _("Provider read again"),
    "account.rotate_credentials": _("Credentials encrypted anew"),
    "account.update": _("Provider changed"),
    "account.verify": _("Provider checked"),
    "agent.acted": _("Agent’s action ended"),
    "agent.ask": _("Agent asked for an action"),
    "agent.enrol": _("Agent let in"),
    "agent.enrol_again": _("Agent let in again"),
    "agent.interval": _("Reporting interval changed"),
    "agent.keep_apart": _("Machines kept apart"),
    "agent.move": _("Agent moved to another machine"),
    "agent.pause": _("Agent paused"),
    "agent.replaced": _("Agent replaced"),
    "agent.resume": _("Agent resumed"),
    "agent.revoke": _("Agent revoked"),
    "adjustment.create": _("Adjustment of costs made"),
    "adjustment.reverse": _("Adjustment of costs taken back"),
    "alert.acknowledge": _("Alert acknowledged"),
    "alert.escalate": _("Alert escalated"),
    "alert.resolve": _("Note put away"),
    "alert.snooze": _("Alert snoozed"),
    "alert.wake": _("Alert woken"),
    "alert_escalation.update": _("Escalation of alerts changed"),
    "alert_rule.update": _("Alert rule changed"),
    "anomaly_rule.update": _("Rule about unusual money changed"),
    "attribution.again": _("Money of the past attributed again"),
    "attribution_rule.add": _("Rule of attribution made"),
    "attribution_rule.change": _("Rule of attribution changed"),
    "attribution_rule.end": _("Rule of attribution ended"),
    "attribution_rule.move": _("Rule of attribution moved"),
    "balance.limits": _("Warnings about a balance changed"),
    "balance.type": _("Balance typed"),
    "bill.accept": _("Costs counted as billed"),
    "bill.ask": _("Provider asked for its bill"),
    "bill.take": _("Bill imported"),
    "bill.upload": _("File of a bill read"),
    "budget.add": _("Budget added"),
    "budget.cross": _("Threshold of a budget reached"),
    "budget.remove": _("Budget removed"),
    "budget.update": _("Budget changed"),
    "calendar.make": _("Calendar address made"),
    "calendar.revoke": _("Calendar address revoked"),
    "channel.add": _("Channel added"),
    "channel.remove": _("Channel removed"),
    "channel.rotate_secret": _("Channel's secrets encrypted anew"),
    "channel.route": _("Who hears what changed"),
    "channel.test": _("Channel tested"),
    "channel.update": _("Channel changed"),
    "charge.add": _("Charge added"),
    "charge.end": _("Charge ended"),
    "charge.remove": _("Charge removed"),
    "cost_report.send": _("Report of costs sent"),
    "cost_report.wish": _("Report of costs chosen or given up"),
    "enrolment_token.create": _("Enrolment token made"),
    "enrolment_token.revoke": _("Enrolment token revoked"),
    "environment.create": _("Template of an environment made"),
    "environment.remove": _("Environment removed"),
    "environment.update": _("Environment or runbook changed"),
    "exchange_rate.import": _("Exchange rates imported"),
    "exchange_rate.remove": _("Exchange rate removed"),
    "exchange_rate.set": _("Exchange rate set"),
    "gateway.set": _("Gateway set"),
    "gateway.token": _("Gateway’s token made"),
    "hold.place": _("Machine held"),
    "job.create": _("Job begun"),
    "job.spend": _("Job's budget spent"),
    "job.show_token": _("Token of a notebook shown"),
    "job_upload.create": _("Files for jobs sent"),
    "job_upload.drop": _("Files for jobs dropped"),
    "job.stop": _("Job stopped by hand"),
    "load_test.begin": _("Load test begun"),
    "load_test.cancel": _("Load test called off"),
    "job.restart": _("Server of a job restarted by hand"),
    "hold.release": _("Hold released"),
    "idle_saving.book": _("Saving by a stop booked"),
    "idle_saving.take_back": _("Saving taken back: the stop did not last"),
    "idle_stop.call_off": _("Idle stop called off"),
    "idle_stop.failed": _("Idle stop failed"),
    "idle_stop.hurry": _("Idle stop brought forward"),
    "idle_stop.order": _("Idle stop ordered"),
    "idle_stop.proved": _("Idle stop proved"),
    "idle_stop.snooze": _("Idle stop put off"),
    "idle_stop.veto": _("Idle stop forbidden"),
    "idle_stop.warn": _("Idle stop begun"),
    "instance.add": _("Machine added"),
    "instance.declare_gone": _("Machine said to be gone"),
    "instance.register": _("Machine registered"),
    "instance.retire": _("Machine given back"),
    "instance.split": _("Split of a machine's money changed"),
    "instance.update": _("Machine changed"),
    "idle_policy.add": _("Idle policy added"),
    "idle_policy.change": _("Idle policy changed"),
    "idle_policy.consent_delete": _("Deleting stopped machines agreed to"),
    "idle_policy.move": _("Idle policy moved"),
    "idle_policy.recommend": _("Another time recommended for an idle policy"),
    "idle_policy.remove": _("Idle policy removed"),
    "idle_policy.take_back_consent": _("Deleting stopped machines no longer agreed to"),
    "invitation.create": _("Invitation made"),
    "invitation.revoke": _("Invitation withdrawn"),
    "machine_use.change": _("Use of a machine changed"),
    "member.join": _("Member joined"),
    "member.remove": _("Member removed"),
    "member.role": _("Role changed"),
    "offer_list.import": _("List of offers imported"),
    "offer_list.remove": _("List of offers removed"),
    "launch_block.lift": _("Launch block lifted"),
    "launch_block.write": _("Launches blocked"),
    "operation.failed": _("Act failed"),
    "operation.proved": _("Act proved"),
    "operation.reopened": _("Act begun anew"),
    "operation.requested": _("Act asked of a provider"),
    "operation.rotate_order": _("Launch's startup script encrypted anew"),
    "person.close": _("Account closed"),
    "person.create": _("Account made"),
    "person.link": _("Account linked to a sign-in"),
    "person.password": _("Password changed"),
    "person.update": _("Profile changed"),
    "planned_action.cancel": _("Planned act called off"),
    "planned_action.done": _("Planned act done"),
    "planned_action.fail": _("Planned act failed"),
    "planned_action.postpone": _("Planned act put off"),
    "planned_action.take": _("Planned act begun"),
    "planned_action.wait": _("Planned act kept waiting"),
    "planned_action.write": _("Act planned"),
    "project.archive": _("Project archived"),
    "project.create": _("Project created"),
    "project.restore": _("Project restored"),
    "project.update": _("Project renamed"),
    "provider_score.health": _("Health score of a provider changed"),
    "power_schedule.add": _("Schedule of machines added"),
    "power_schedule.remove": _("Schedule of machines removed"),
    "power_schedule.update": _("Schedule of machines changed"),
    "provider_score.drop": _("Rating of a provider dropped"),
    "provider_score.rate": _("Provider rated"),
    "sandbox.hide": _("Sandbox hidden"),
    "sandbox.past": _("Sandbox given its past"),
    "sandbox.show": _("Sandbox shown"),
    "scrape_target.add": _("Exporter added"),
    "scrape_target.read_now": _("Exporter read at once"),
    "scrape_target.remove": _("Exporter removed"),
    "scrape_target.rotate_token": _("Exporter's token encrypted anew"),
    "scrape_target.update": _("Exporter changed"),
    "source.add": _("Prometheus source added"),
    "source.choose": _("Machine chosen for a label of a Prometheus source"),
    "source.remove": _("Prometheus source removed"),
    "source.rotate_token": _("Prometheus source's token encrypted anew"),
    "source.update": _("Prometheus source changed"),
    "session.end": _("Signed out elsewhere"),
    "ssh_host.confirm": _("Host key confirmed"),
    "right_sizing.dismiss": _("Smaller machine put away"),
    "ssh_key.rotate": _("SSH key encrypted anew"),
    "ssh_key.set": _("SSH key set"),
    "team.create": _("Team created"),
    "team.update": _("Team changed"),
    "token.create": _("API token made"),
    "token.revoke": _("API token revoked"),
    "unix_user.map": _("User of the operating system mapped"),
    "unix_user.unmap": _("User of the operating system no longer mapped"),
    "window.add": _("Maintenance planned"),
    "window.cancel": _("Maintenance called off"),
}
FIELDS: Words = {
    "account": _("provider account"),
    "act": pgettext_lazy("audit", "act"),
    "about": _("about"),
    "after_minutes": _("after so many minutes"),
    "amount": _("amount"),
    "basis": _("held against"),
    "causes": _("causes"),
    "charge": _("charge"),
    "commands": _("launch commands"),
    "conflict": _("conflict"),
    "currency": _("currency"),
    "digest": _("how often"),
    "days": pgettext_lazy("audit", "days"),
    "email": _("e-mail"),
    "enabled": _("is read"),
    "error": pgettext_lazy("audit", "error"),
    "ended": _("sessions ended"),
    "expires_at": _("ends"),
    "for_seconds": _("for at least"),
    "first_name": _("first name"),
    "forecast_thresholds": _("thresholds of the forecast"),
    "found": _("found"),
    "gone": _("gone"),
    "gpu_count": _("number of GPUs"),
    "gpu_raw": _("GPU model"),
    "hard": _("hard"),
    "has_token": _("has a token"),
    "hides_sandbox": _("hides the sandbox"),
    "hostname": _("host name"),
    "instance": _("machine"),
    "interval_seconds": _("interval"),
    "issuer": _("sign-in service"),
    "kind": _("kind"),
    "labels": _("labels"),
    "label_key": _("label"),
    "label_value": _("value of the label"),
    "machines": _("machines"),
    "language": _("language"),
    "last_name": _("last name"),
    "managed": _("registered"),
    "max_uses": _("machines it lets in"),
    "monitor_only": _("only watched"),
    "name": _("name"),
    "name_pattern": _("pattern of names"),
    "notes": _("notes"),
    "notice_hours": _("hours of notice"),
    "notice_minutes": _("minutes of notice"),
    "options": _("options"),
    "override_reason": _("why no hold counted"),
    "only_escalated": _("only what is escalated"),
    "only_mine": _("only one's own machines"),
    "order": pgettext_lazy("audit", "position"),
    "owner": _("owner"),
    "pairs": _("pairs of currencies"),
    "percent": _("percent"),
    "period": _("period"),
    "person": pgettext_lazy("audit", "person"),
    "pitfalls": _("pitfalls"),
    "poll_interval_seconds": _("read every"),
    "prefix": _("token begins with"),
    "price": _("price"),
    "price_per_hour": _("price per hour"),
    "price_per_month": _("price per month"),
    "project": _("project"),
    "quantity": _("quantity"),
    "quiet_hours": _("quiet hours"),
    "rate": _("exchange rate"),
    "rates": _("exchange rates"),
    "reason": _("reason"),
    "reference": _("container image"),
    "region": _("place"),
    "role": _("role"),
    "scope": _("may"),
    "severity": _("severity"),
    "start_at": _("start at"),
    "starts_at": _("from"),
    "stop_at": _("stop at"),
    "slug": _("address"),
    "split": _("how it is split"),
    "ssh": _("SSH address"),
    "ssh_typed": _("way over SSH, as typed"),
    "state": _("state"),
    "stops": _("plans stops"),
    "storage_price_per_hour": _("disks per hour"),
    "tenancy": _("shared with others"),
    "thresholds": _("thresholds"),
    "time_zone": _("time zone"),
    "token_changed": _("new token"),
    "typed": _("typed versions"),
    "unit": pgettext_lazy("audit", "unit"),
    "until": _("until"),
    "urgent_breaks_quiet": _("urgent alerts break the quiet"),
    "urgent_hours": _("urgent, hours before"),
    "url": _("address"),
    "warning_hours": _("warning, hours before"),
    "accept_loss": _("also with loss of data"),
    "delete_after_days": _("deleted days after a stop"),
    "excluded": _("machines left out"),
    "grace_minutes": _("minutes of grace"),
    "holidays": _("holidays of"),
    "hook_minutes": _("minutes for the preparation"),
    "label_name": _("label"),
    "limits": pgettext_lazy("audit", "thresholds"),
    "max_age_hours": _("hours at most"),
    "office_days": _("office days"),
    "office_from": _("office hours from"),
    "office_until": _("office hours until"),
    "provider": _("provider"),
    "restart_minutes": _("minutes of a restart"),
    "runs_until": _("may run until"),
    "stop_without_hook": _("also where the preparation fails"),
    "switched_on": _("switched on"),
    "then": pgettext_lazy("audit", "then"),
    "used_as": _("used as"),
    "warn_minutes": _("reminders, minutes before"),
    "window_from": _("where the time comes from"),
    "window_minutes": _("minutes of rest"),
    "recommended_minutes": _("recommended minutes of rest"),
    "wrong_stop_gpu_hours": _("GPU-hours of a wrong stop"),
    "username": _("user name"),
}
VIAS: Words = {
    "page": _("on a page"),
    "api": _("through the API"),
    "link": _("by a link in a message"),
    "agent": _("by an agent"),
    "system": _("by Rackrent itself"),
}
TARGETS: Words = {
    "APIToken": _("API token"),
    "Alert": _("alert"),
    "BalanceLimits": _("warnings about a balance"),
    "BalanceReading": _("balance"),
    "Budget": _("budget"),
    "AttributionRule": _("rule of attribution"),
    "CalendarFeed": _("calendar"),
    "Channel": _("channel"),
    "EscalationPolicy": _("escalation of alerts"),
    "EnrolmentToken": _("enrolment token"),
    "Environment": _("environment"),
    "ExchangeRate": _("exchange rate"),
    "IdlePolicy": _("idle policy"),
    "Instance": _("machine"),
    "Invitation": _("invitation"),
    "LaunchBlock": _("launch block"),
    "TypedCharge": _("charge"),
    "MaintenanceWindow": _("maintenance window"),
    "Operation": _("act on a machine"),
    "PlannedAction": _("planned act"),
    "PowerSchedule": _("schedule of machines"),
    "Project": _("project"),
    "ProviderAccount": _("provider account"),
    "Reattribution": _("attribution of the past"),
    "Rule": _("alert rule"),
    "Team": _("team"),
    "UnixUser": _("user of the operating system"),
    "User": pgettext_lazy("audit", "person"),
}
# Words for the values of a field. Packages above this one add theirs where they register.
VALUES: dict[str, Words] = {"role": dict(Role.choices), "scope": dict(Scope.choices)}
MOMENTS = frozenset({"until", "expires_at", "runs_until", "starts_at"})
PRICES = frozenset({"price_per_hour", "price_per_month", "storage_price_per_hour"})
SECONDS = frozenset({"for_seconds", "interval_seconds", "poll_interval_seconds"})


@dataclass(frozen=True, slots=True)
class Change:
    """None: there is no value on this side."""

    field: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Line:
    entry: AuditEntry
    who: str
    action: str
    via: str
    target: str
    changes: list[Change]


def line_of(entry: AuditEntry) -> Line:
    changes = [
        Change(word_of(FIELDS, field), value_text(field, old), value_text(field, new))
        for field, old, new in entry.changes
    ]
    target = word_of(TARGETS, entry.target_type)
    return Line(
        entry, actor_text(entry.actor_label), word_of(ACTIONS, entry.action), word_of(VIAS, entry.via), target, changes
    )


def word_of(words: Words, name: str) -> str:
    """The name itself where there is no word: the log holds what earlier releases wrote, too."""
    return str(words.get(name, name))


def value_text(field: str, value: object) -> str | None:
    """A value of JSON as people write it; None stays None."""
    if value is None or isinstance(value, str):
        return value and string_text(field, value)
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, Mapping | list):
        return parts_text(field, value)
    return duration_text(value) if field in SECONDS and isinstance(value, int) else str(value)


def parts_text(field: str, value: Mapping[str, object] | list[object]) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={value_text(key, part) or ''}" for key, part in value.items())
    return ", ".join(address_text(part) if field == "ssh" else value_text(field, part) or "" for part in value)


def string_text(field: str, value: str) -> str:
    if field in MOMENTS:
        return moment_text(value)
    if field in PRICES:
        return price_text(value)
    return word_of(VALUES.get(field, {}), value)


def moment_text(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return f"{timezone.localtime(moment) if timezone.is_aware(moment) else moment:%Y-%m-%d %H:%M}"


def price_text(value: str) -> str:
    try:
        return format(Decimal(value).normalize(), "f")
    except InvalidOperation:
        return value


def address_text(part: object) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    user, host, port = part.get("user"), part.get("host"), part.get("port")
    return f"{user}@{host}:{port}" if user else f"{host}:{port}"
