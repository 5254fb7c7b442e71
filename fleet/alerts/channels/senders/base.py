"""What a sender is: one way to tell people something, described as data, and what came of telling it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar

from django.utils.functional import Promise

from fleet.guard import Guard

Text = str | Promise
# Events that ask for somebody. The others say how it goes on: they interrupt nobody's night and open no incident.
ASKING = frozenset({"opened", "reopened", "worsened", "flapping", "woke", "escalated", "reminded"})


class Result(Enum):
    """What came of one attempt.

    RETRY: it was not taken, the same may work later, and other messages of the channel would fare alike. UNCERTAIN: nobody can tell whether
    it was taken. REFUSED: this message will never be taken. BROKEN: nothing will be, until a person mends the channel.
    """

    SENT = "sent"
    RETRY = "retry"
    UNCERTAIN = "uncertain"
    REFUSED = "refused"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`code`: a key of words.FAILURES; `detail`: what the other side said, cut short, without a secret."""

    result: Result
    code: str = ""
    detail: str = ""
    response_id: str = ""
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that a person fills in. `secret`: sealed, and never shown again. `kind`: text, url, email, emails. `pattern`: what `help` describes."""

    name: str
    label: Text
    help: Text = ""
    kind: str = "text"
    secret: bool = False
    required: bool = True
    default: str = ""
    pattern: str = ""
    max_length: int = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """What the other side takes. `in_bytes`: lengths count UTF-8 bytes and not characters."""

    title: int
    text: int
    per_minute: int
    in_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Message:
    """What is said, in the reader's language and without markup. Names in it come from agents and providers: each sender escapes them.

    key: the same in every attempt. thread: the alert that it is about, the same in all of its messages; "" for a message about several.
    `event`: a kind of event, "summary", or "test". data: the same for programs.
    """

    key: str
    thread: str
    event: str
    severity: str
    severity_word: str
    title: str
    lines: Sequence[str]
    facts: Sequence[tuple[str, str]]
    remedy: str
    link: Link
    sent_at: datetime
    acts: Sequence[Link] = ()
    is_resolved: bool = False
    language: str = "en"
    data: Mapping[str, Any] = field(default_factory=dict)


class Sender(ABC):
    """One kind of channel.

    idempotent: the other side takes a message that it got twice for one. gathers: several alerts may go out as one message.
    """

    name: ClassVar[str]
    label: ClassVar[Text]
    fields: ClassVar[tuple[Field, ...]]
    limits: ClassVar[Limits]
    idempotent: ClassVar[bool] = False
    gathers: ClassVar[bool] = True

    @abstractmethod
    def send(self, message: Message, config: Mapping[str, str], guard: Guard) -> Outcome:
        """Tells it once, now. Raises nothing: what goes wrong is an outcome."""
