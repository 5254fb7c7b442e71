"""How a job serves: under which port it answers, what it is, and when it is started anew. Job.serving holds it as JSON; {} = the job serves nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobs.book.order import JobRefused, Order

MOST_RESTARTS = 20
_PATH = re.compile(r"/[A-Za-z0-9._~/-]{0,199}")


class Engine(TextChoices):
    """fleet.telemetry.serving's names of engines; OTHER: whatever speaks OpenAI's API."""

    VLLM = "vllm", "vLLM"
    TGI = "tgi", "TGI"
    TRTLLM = "trtllm", "TensorRT-LLM"
    TRITON = "triton", "Triton"
    OTHER = "other", _("another, OpenAI-compatible")


class Restart(TextChoices):
    """UNHEALTHY: also when it ends by itself."""

    NEVER = "never", pgettext_lazy("restart", "never")
    ON_EXIT = "exit", _("when it ends")
    ON_UNHEALTHY = "unhealthy", _("when it ends, or answers no more")


@dataclass(frozen=True, slots=True)
class Serving:
    """`port`: on the machine's own loopback. `health_path` answers 200 when it is well. `model`: as /v1/models names it, "" = whichever is there.

    `metrics_port`: None = the same port. `timeout_seconds`: how long clients wait, None = nobody said. `most_restarts`: in a row; one that served for long begins the count anew.
    """

    port: int
    health_path: str = "/health"
    model: str = ""
    engine: str = Engine.VLLM.value
    metrics_port: int | None = None
    restart: str = Restart.NEVER.value
    most_restarts: int = 3
    timeout_seconds: float | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Serving | None:
        """Of Job.serving; None: it serves nothing."""
        return cls(**kept) if kept else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_restarted(self) -> bool:
        return self.restart != Restart.NEVER


def refuse_serving(order: Order) -> Serving | None:
    """What is kept of it. Raises JobRefused; its field is serving, or serving.port and the like."""
    given = order.serving
    if order.kind != "serving":
        if given:
            raise JobRefused("serving", _("Only a job of kind serving has these: change its kind, or leave them out."))
        return None
    if unknown := sorted(set(given) - set(Serving.__dataclass_fields__)):
        raise JobRefused("serving", _("%(name)s is nothing that is known here.") % {"name": unknown[0][:40]})
    if not _is_port(given.get("port")):
        raise JobRefused("serving.port", _("Say on which port of the machine it answers: a number up to 65535."))
    serving = Serving(**given)
    _refuse_texts(serving)
    _refuse_choices(serving)
    return serving


def _refuse_texts(serving: Serving) -> None:
    if not isinstance(serving.health_path, str) or not _PATH.fullmatch(serving.health_path):
        raise JobRefused("serving.health_path", _("Write a path such as /health."))
    if not isinstance(serving.model, str) or len(serving.model) > 200 or not serving.model.isprintable():
        raise JobRefused("serving.model", _("Write the model's name in one line of at most 200 characters."))


def _refuse_choices(serving: Serving) -> None:
    if serving.metrics_port is not None and not _is_port(serving.metrics_port):
        raise JobRefused(
            "serving.metrics_port", _("A port is a number up to 65535; leave it out where it is the same.")
        )
    if serving.timeout_seconds is not None and not _is_seconds(serving.timeout_seconds):
        raise JobRefused(
            "serving.timeout_seconds", _("A number of seconds up to a day; leave it out where nobody knows.")
        )
    for name, choices in (("engine", Engine), ("restart", Restart)):
        if getattr(serving, name) not in choices.values:
            said = {"choices": ", ".join(choices.values)}
            raise JobRefused(f"serving.{name}", _("Choose one of %(choices)s.") % said)
    most = serving.most_restarts
    if not isinstance(most, int) or isinstance(most, bool) or not 0 <= most <= MOST_RESTARTS:
        raise JobRefused("serving.most_restarts", _("A number from 0 to %(n)d.") % {"n": MOST_RESTARTS})


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 86_400


def _is_port(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65_536
