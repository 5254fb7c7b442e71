"""What the rules about unusual money are called, what their alerts say and what to do about them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.rule_words import RuleWords, ThresholdWords
from fleet.alerts.words import register_words
from fleet.costs.anomalies.lookback import SPAN_DAYS, Fired
from fleet.formats import money_text, whole_money_text

Values = Mapping[str, Any]

RULE_WORDS: Mapping[str, RuleWords] = {
    "costs_burn_rate": RuleWords(
        gettext_lazy("Burn rate"),
        gettext_lazy("What is charged an hour now, against the median of the last seven days."),
    ),
    "costs_new_machine": RuleWords(
        gettext_lazy("Expensive new machine"), gettext_lazy("A machine that was first seen within the last day.")
    ),
    "costs_stopped_storage": RuleWords(
        gettext_lazy("Disks of stopped machines"), gettext_lazy("What the disks of all stopped machines cost together.")
    ),
    "costs_idle_share": RuleWords(
        gettext_lazy("Idle share"),
        gettext_lazy(
            "The part of yesterday's money that went to GPUs held idle or free, against the seven days before."
        ),
    ),
    "costs_weekday": RuleWords(
        gettext_lazy("Dear day"),
        gettext_lazy("What yesterday cost, against the same weekday of the four weeks before."),
    ),
}
LEAST = ThresholdWords(
    gettext_lazy("Only if it is so much money a day"), gettext_lazy("and it comes to at least %(value)s a day")
)
THRESHOLD_WORDS: Mapping[tuple[str, str], ThresholdWords] = {
    ("costs_burn_rate", "factor"): ThresholdWords(
        gettext_lazy("Times the median"), gettext_lazy("an hour costs %(value)s times the median of seven days")
    ),
    ("costs_burn_rate", "least_a_day"): LEAST,
    ("costs_new_machine", "per_hour"): ThresholdWords(
        gettext_lazy("Price an hour"), gettext_lazy("a new machine costs %(value)s an hour or more")
    ),
    ("costs_stopped_storage", "per_month"): ThresholdWords(
        gettext_lazy("Price a month"), gettext_lazy("they cost %(value)s a month or more")
    ),
    ("costs_idle_share", "points"): ThresholdWords(
        gettext_lazy("Percentage points above the median"),
        gettext_lazy("it is %(value)s percentage points above the median"),
    ),
    ("costs_idle_share", "least_a_day"): LEAST,
    ("costs_weekday", "factor"): ThresholdWords(
        gettext_lazy("Times the usual"), gettext_lazy("it costs %(value)s times what that weekday usually costs")
    ),
    ("costs_weekday", "least_a_day"): LEAST,
}
CAUSES = (
    Cause(
        "costs.burn_rate",
        gettext_lazy("Money is spent faster than usual"),
        gettext_lazy(
            "Look at Instances, dearest first, for what was started lately, and at Idle for what does nothing."
        ),
        quietable=False,
    ),
    Cause(
        "costs.new_machine",
        gettext_lazy("is new and expensive"),
        gettext_lazy("Ask its owner what it is for and how long it stays; a planned stop limits what it costs."),
        quietable=False,
    ),
    Cause(
        "costs.stopped_storage",
        gettext_lazy("Disks of stopped machines add up"),
        gettext_lazy(
            "End machines that nobody will start again, after their data is saved: a stop alone goes on costing."
        ),
        quietable=False,
    ),
    Cause(
        "costs.idle_share",
        gettext_lazy("More of the money goes to idle GPUs"),
        gettext_lazy(
            "Look at Costs, split by GPU state and project, for where it began; free or stop what nobody uses."
        ),
        quietable=False,
    ),
    Cause(
        "costs.weekday",
        gettext_lazy("Yesterday cost more than that weekday usually does"),
        gettext_lazy(
            "Look at Costs, split by machine and project, for what was not there on the same day of the weeks before."
        ),
        quietable=False,
    ),
)


def money(values: Values, name: str) -> str:
    return money_text(Decimal(values[name]), values.get("currency", "USD"))


def whole(values: Values, name: str) -> str:
    return whole_money_text(Decimal(values[name]), values.get("currency", "USD"))


def day_of(values: Values) -> str:
    return date_format(date.fromisoformat(values["day"]), "D j M")


def burn_words(values: Values) -> str:
    said = {"now": money(values, "per_hour"), "usual": money(values, "usual"), "more": whole(values, "a_day")}
    if not values["factor"]:
        return _("%(now)s an hour, where it was nothing for seven days; %(more)s more a day") % said
    said["factor"] = values["factor"]
    return _("%(now)s an hour, %(factor)s times the %(usual)s of the last seven days; %(more)s more a day") % said


def new_machine_words(values: Values) -> str:
    return _("first seen within a day, %(price)s an hour") % {"price": money(values, "per_hour")}


def stopped_words(values: Values) -> str:
    count = values["machines"]
    said = {"n": count, "amount": whole(values, "per_month")}
    text = ngettext("%(amount)s a month for the disks of %(n)d stopped machine", "%(amount)s a month for the disks of %(n)d stopped machines", count) % said  # fmt: skip
    named = [f"{one['machine']} {money({**values, **one}, 'per_month')}" for one in values["dearest"]]
    return f"{text}: {', '.join(named)}" if named else text


def idle_words(values: Values) -> str:
    said = {
        "day": day_of(values),
        "percent": values["percent"],
        "usual": values["usual"],
        "idle": whole(values, "idle"),
        "more": whole(values, "a_day"),
    }
    return _("%(percent)d%% of the money of %(day)s was idle (%(idle)s), usually %(usual)d%%; %(more)s more") % said


def weekday_words(values: Values) -> str:
    said = {"day": day_of(values), "amount": whole(values, "amount"), "usual": whole(values, "usual"), "weeks": values["weeks"]}  # fmt: skip
    return _("%(day)s cost %(amount)s; the same weekday of %(weeks)d weeks before it: %(usual)s") % said


def threshold_text(kind: str, name: str, value: float, currency: str) -> str:
    words = THRESHOLD_WORDS[kind, name]
    is_money = name in {"per_hour", "per_month", "least_a_day"}
    shown = money_text(Decimal(str(value)), currency) if is_money else f"{value:g}"
    return str(words.says % {"value": shown})


def fired_text(fired: Fired) -> str:
    """How often it would have fired, and on how many days it would have been open."""
    if not fired.judged:
        return _("There is too little history to say how often it would have fired.")
    said: dict[str, int | str] = {"judged": fired.judged, "days": len(fired.days)}
    if not fired.times:
        return _("It would not have fired on any of %(judged)d days.") % said
    said["times"] = ngettext("once", "%(n)d times", fired.times) % {"n": fired.times}
    text = _("It would have fired %(times)s, and been open on %(days)d of %(judged)d days.") % said
    return text if fired.judged == SPAN_DAYS else f"{text} {_('Of the other days too little is known.')}"


def register() -> None:
    for cause in CAUSES:
        register_cause(cause)
    register_words("costs_burn_rate", burn_words)
    register_words("costs_new_machine", new_machine_words)
    register_words("costs_stopped_storage", stopped_words)
    register_words("costs_idle_share", idle_words)
    register_words("costs_weekday", weekday_words)
