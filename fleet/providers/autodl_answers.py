"""AutoDL's envelope: {"code", "msg", "data"}, where a refusal is HTTP 200 with another code than Success."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import DETAIL_CHARS, JSON
from fleet.providers.redact import cut, redact

LABEL = "AutoDL"
CODES: Mapping[str, type[ProviderError]] = {
    "RecordNotFoundError": NotFound,
    "AuthorizeFailed": AuthFailed,
    "TooManyRequests": RateLimited,
}
# Most refusals have no code of their own and say it in Chinese. The first that fits counts.
WORDS: tuple[tuple[re.Pattern[str], type[ProviderError]], ...] = (
    (re.compile(r"余额|欠费|balance"), QuotaOrFunds),
    (re.compile(r"库存|不足|无空闲|没有空闲"), NoCapacity),
    (re.compile(r"不存在|not found", re.IGNORECASE), NotFound),
    (re.compile(r"频繁|too many", re.IGNORECASE), RateLimited),
    (re.compile(r"权限|实名|permission", re.IGNORECASE), ScopeMissing),
    (re.compile(r"登录|鉴权|认证|token|unauthorized", re.IGNORECASE), AuthFailed),
    (re.compile(r"关机|开机|运行中|状态"), WrongState),
)


def data_of(answer: JSON, secrets: Iterable[str]) -> JSON:
    """What an answer carries, which may be nothing. Raises the error that a refusal tells of."""
    if not isinstance(answer, dict) or not isinstance(answer.get("code"), str):
        raise Unavailable(f"{LABEL}'s answer is not in the form of its API.")
    if answer["code"] == "Success":
        return answer.get("data")
    detail = (
        cut(redact(str(answer.get("msg") or ""), secrets), DETAIL_CHARS) or f"{LABEL} refuses: {answer['code'][:60]}"
    )
    raise refusal_of(answer["code"], detail)(detail)


def refusal_of(code: str, message: str) -> type[ProviderError]:
    return CODES.get(code) or next((kind for words, kind in WORDS if words.search(message)), Invalid)
