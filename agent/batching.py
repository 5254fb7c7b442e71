"""Samples and news on their way into the next batch."""

from __future__ import annotations

from agent import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.outbox import Outbox

# Limits of the protocol; a batch that goes over one is refused whole
_MOST_SAMPLES = 720
_MOST_EVENTS = 256
_MOST_ROWS = 64
_MOST_STRING = 200


class Batcher:
    """``inventory`` and ``environment`` travel once, and again whenever they change."""

    def __init__(self) -> None:
        self._samples: list[dict[str, object]] = []
        self._events: list[dict[str, object]] = []
        self._news: dict[str, object] = {}
        self._sent: dict[str, object] = {}

    def add_sample(self, sample: dict[str, object]) -> None:
        host, gpus = sample.get("host"), sample.get("gpus")
        if isinstance(gpus, list):
            sample = {**sample, "gpus": gpus[:_MOST_ROWS]}
        if isinstance(host, dict):
            sample = {**sample, "host": {name: _cut(value) for name, value in host.items()}}
        self._samples.append(shortened(rounded(sample)))

    def add_event(self, event: dict[str, object]) -> None:
        self._events.append(shortened(event))

    def tell(self, name: str, value: object) -> None:
        """Put ``inventory`` or ``environment`` into the next batch if it is news."""
        if self._sent.get(name) != value:
            self._sent[name] = value
            self._news[name] = shortened(value)

    @property
    def full(self) -> bool:
        return len(self._samples) >= _MOST_SAMPLES

    def flush(self, outbox: Outbox, *, made_at: float, steady_at: float, boot_id: str) -> bool:
        """Move what was gathered into the outbox; False when there was nothing."""
        if not (self._samples or self._events or self._news):
            return False
        document = {"v": 1, "agent_version": __version__, **self._news, "samples": self._samples[:_MOST_SAMPLES]}
        if self._events:
            document["events"] = self._events[:_MOST_EVENTS]
        outbox.add(document, made_at=made_at, steady_at=steady_at, boot_id=boot_id)
        self._samples, self._events, self._news = self._samples[_MOST_SAMPLES:], self._events[_MOST_EVENTS:], {}
        return True


def _cut(value: object) -> object:
    return value[:_MOST_ROWS] if isinstance(value, list) else value


def rounded(value: Any) -> Any:
    """Six significant decimals: a rate is not known better, and the rest only costs bytes. Times keep milliseconds."""
    if isinstance(value, float):
        return round(value, 6) if abs(value) < 1000 else round(value, 3)
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


def shortened(value: Any) -> Any:
    """Strings cut to what the protocol takes, lone surrogates replaced: names come from anywhere."""
    if isinstance(value, str):
        return value[:_MOST_STRING].encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: shortened(part) for name, part in value.items()}
    return [shortened(part) for part in value] if isinstance(value, list) else value
