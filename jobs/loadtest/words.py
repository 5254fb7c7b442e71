"""What load tests say, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from jobs.book.words import ERRORS as REACH_ERRORS
from jobs.loadtest.plan import PlanProblem

Words = Mapping[str, str | Promise]
PROBLEMS: Words = {
    "range": gettext_lazy("This goes beyond what a load test may do: %(most)s is the limit."),
    "too_long": gettext_lazy(
        "All stages together would last longer than %(most)s seconds: make them fewer or shorter."
    ),
    "stages": gettext_lazy("One to %(most)s stages."),
    "rising": gettext_lazy("Each stage has to load more than the one before."),
    "whole": gettext_lazy("So many requests at once are a whole number."),
    "level": gettext_lazy("A stage loads more than nothing and at most %(most)s."),
}
# Why it ended otherwise than by coming to its end.
WHYS: Words = {
    "cancelled": gettext_lazy("somebody called it off"),
    "time": gettext_lazy("its time was over"),
    "job_ended": gettext_lazy("the job ended under it"),
    "interrupted": gettext_lazy("the worker that carried it out was ended"),
    "never_begun": gettext_lazy("no worker had time for it within an hour"),
    "no_ssh_key": gettext_lazy("this team has no SSH key that can be used"),
    "key_sealed": gettext_lazy("the job's secrets cannot be opened any more"),
    "no_model": gettext_lazy("the server names no model at /v1/models"),
    "first_request": gettext_lazy("already the first request was not answered"),
}
# What became of a request that was not answered.
ERRORS: Words = {
    "timeout": pgettext_lazy("load test", "not answered in time"),
    "broken": pgettext_lazy("load test", "connection broke"),
    "key": pgettext_lazy("load test", "API key refused"),
    "http_404": pgettext_lazy("load test", "no such model or path (404)"),
    "http_429": pgettext_lazy("load test", "turned away (429)"),
    "http_4xx": pgettext_lazy("load test", "refused (4xx)"),
    "http_5xx": pgettext_lazy("load test", "server error (5xx)"),
    "redirect": pgettext_lazy("load test", "sent elsewhere, which is not followed"),
    "no_stream": pgettext_lazy("load test", "answered something else than OpenAI's API does"),
    "said_error": pgettext_lazy("load test", "broken off with an error"),
    "too_large": pgettext_lazy("load test", "answer too large"),
    "empty": pgettext_lazy("load test", "answered without a word"),
}
PAST: Words = {
    "failed": gettext_lazy("requests fail"),
    "ttft": gettext_lazy("the first token comes later than promised"),
    "tpot": gettext_lazy("tokens come slower than promised"),
    "flat": gettext_lazy("more load is answered by waiting, hardly by more work"),
    "behind": gettext_lazy("more begins than is answered"),
    "tester": gettext_lazy("the load test itself was too slow to tell"),
}
ADVICE: Words = {
    "max_concurrency": gettext_lazy("Requests at once"),
    "requests_per_second": gettext_lazy("Requests a second"),
    "queue_limit": gettext_lazy("Waiting at most"),
    "memory_share": gettext_lazy("GPU memory for the server"),
}
BECAUSE: Words = {
    "no_knee": gettext_lazy(
        "At least: no stage was past the knee. %(rate)s requests and %(tokens)s tokens a second came out."
    ),
    "knee_failed": gettext_lazy("Beyond it, requests fail. %(rate)s requests and %(tokens)s tokens a second come out."),
    "knee_ttft": gettext_lazy(
        "Beyond it, the first token comes later than promised. %(rate)s requests and %(tokens)s tokens a second come out."
    ),
    "knee_tpot": gettext_lazy(
        "Beyond it, tokens come slower than promised. %(rate)s requests and %(tokens)s tokens a second come out."
    ),
    "knee_flat": gettext_lazy(
        "Beyond it, more requests wait for each other: less than half of what is added comes out as work. %(rate)s requests and %(tokens)s tokens a second come out."
    ),
    "knee_behind": gettext_lazy(
        "Beyond it, more begins than is answered. %(rate)s requests and %(tokens)s tokens a second come out."
    ),
    "knee_tester": gettext_lazy(
        "At least: beyond it the load test itself was too slow to tell. %(rate)s requests and %(tokens)s tokens a second came out."
    ),
    "knee_rate": gettext_lazy("What all replicas together answer at the knee; a gateway admits no more."),
    "queue_promise": gettext_lazy(
        "Of each replica: whoever waits behind so many, at %(rate)s a second, still has the first token within %(promise)s s (it takes %(ttft)s s by itself)."
    ),
    "queue_round": gettext_lazy(
        "Of each replica: nothing was promised, so nobody is to wait longer than one answer takes, %(seconds)s s."
    ),
    "kv_unknown": gettext_lazy("The server does not tell how full its KV cache is."),
    "kv_spare": gettext_lazy("Leave it: the KV cache was %(kv)s%% full at most, more of it would lie idle."),
    "kv_fits": gettext_lazy("Leave it: the KV cache was %(kv)s%% full at most."),
    "kv_full": gettext_lazy(
        "The KV cache was %(kv)s%% full. Give the server more memory if the card has some; how much, nobody can say here."
    ),
    "kv_full_card": gettext_lazy(
        "The KV cache was %(kv)s%% full and the card is too, %(used)s%%. Shorten the context, keep the cache in FP8, or add a replica."
    ),
    "kv_full_room": gettext_lazy(
        "The KV cache was %(kv)s%% full, and %(used)s%% of the card are in use: there is room for more than the share of %(share)s."
    ),
}
_PERCENT = frozenset({"kv", "used"})


def problem_text(problem: PlanProblem) -> str:
    return str(PROBLEMS[problem.code]) % {"most": f"{problem.most:g}"}


def why_text(code: str, detail: str = "") -> str:
    said = str(WHYS.get(code) or REACH_ERRORS.get(code) or code)
    return _("%(why)s: %(detail)s") % {"why": said, "detail": error_text(detail)} if detail else said


def error_text(code: str) -> str:
    return str(ERRORS.get(code, code))


def because_text(code: str, values: Mapping[str, float]) -> str:
    """Empty for what nobody has words for any more."""
    text = str(BECAUSE.get(code, ""))
    return text % {name: number_text(name, value) for name, value in values.items()} if text else ""


def number_text(name: str, value: float) -> str:
    if name in _PERCENT:
        return f"{100 * value:.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")
