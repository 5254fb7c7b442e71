"""One request of a load test, as its client saw it. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """Times are seconds from the beginning of the test. `ttft_seconds`: to the first word of the answer, None where it does not come in parts.

    `tokens`: of the answer; `error`: "" = it was answered, else a key of words.ERRORS. `replica`: the rank of the machine.
    """

    began: float
    ended: float
    ttft_seconds: float | None = None
    tokens: int = 0
    error: str = ""
    replica: int = 0

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def tpot_seconds(self) -> float | None:
        """Of each token after the first; None where there was one at most."""
        if self.ttft_seconds is None or self.tokens < 2:
            return None
        return max(self.seconds - self.ttft_seconds, 0.0) / (self.tokens - 1)
