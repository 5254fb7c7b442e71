"""What is said of servers of jobs, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

Words = Mapping[str, str | Promise]
# Why a look found it not up (Server.code), or its page of metrics not to be read (Server.metrics_code).
CODES: Words = {
    "forward": gettext_lazy("nothing listens on its port yet"),
    "timeout": gettext_lazy("it does not answer in time"),
    "status": gettext_lazy("it answers with an error"),
    "redirect": gettext_lazy("it sends elsewhere"),
    "token": gettext_lazy("it wants a key"),
    "broken": gettext_lazy("it breaks the connection off"),
    "too_large": gettext_lazy("it answers with far too much"),
    "no_model": gettext_lazy("it has not loaded the model"),
    "not_models": gettext_lazy("its list of models cannot be read"),
    "not_metrics": gettext_lazy("its metrics are none of an engine that is known here"),
    "not_reached": gettext_lazy("the machine cannot be reached"),
}


def code_text(code: str) -> str:
    return str(CODES.get(code, code))
