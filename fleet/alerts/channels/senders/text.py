"""Texts within limits, and the escapes of each markup. Names come from agents and providers: none may call people or make a link."""

from __future__ import annotations

import re
from collections.abc import Callable

from fleet.alerts.channels.senders.base import ASKING, Limits, Message
from fleet.teams.fields import one_line

Escape = Callable[[str], str]
MORE = "…"


def title_of(message: Message, limits: Limits, escape: Escape = str) -> str:
    """With the word for how bad it is where the message asks for somebody: most places show no colour for it."""
    word = f"{message.severity_word}: " if message.event in ASKING and message.severity_word else ""
    return fit(one_line(word + message.title), limits.title, escape, in_bytes=limits.in_bytes)


def body_of(message: Message, limits: Limits, escape: Escape = str, *, newline: str = "\n", reserve: int = 0) -> str:
    """Lines, facts and what to do, as lines of text. `reserve`: what the sender adds by itself."""
    return newline.join(fitting_lines(body_lines(message), limits, escape, newline=newline, reserve=reserve))


def body_lines(message: Message) -> list[str]:
    lines = [*message.lines, *(f"{label}: {value}" for label, value in message.facts)]
    return [one_line(line) for line in [*lines, message.remedy] if line]


def fitting_lines(
    lines: list[str], limits: Limits, escape: Escape, *, newline: str = "\n", reserve: int = 0
) -> list[str]:
    """As many lines as there is room for; the last one may be cut short. An escape is never cut in two."""
    room = limits.text - reserve
    taken: list[str] = []
    for line in lines:
        escaped = fit(line, room, escape, in_bytes=limits.in_bytes)
        if not escaped:
            break
        taken.append(escaped)
        room -= _size(escaped + newline, in_bytes=limits.in_bytes)
        if escaped != escape(line):
            break
    return taken


def fit(text: str, room: int, escape: Escape, *, in_bytes: bool) -> str:
    """The longest beginning of `text` that has room once it is escaped; "" where not even a sign of it has."""
    if _size(escape(text), in_bytes=in_bytes) <= room:
        return escape(text)
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if _size(escape(text[:middle] + MORE), in_bytes=in_bytes) <= room:
            low = middle
        else:
            high = middle - 1
    return escape(text[:low] + MORE) if low else ""


def _size(text: str, *, in_bytes: bool) -> int:
    return len(text.encode()) if in_bytes else len(text)


def html(text: str) -> str:
    """Of Slack's mrkdwn and Telegram's HTML: with <, > and & there is no tag, no link and no mention such as <!channel>."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


_SEEN_BY_TELEGRAM = re.compile(r"(?<=[@#/])(?=\S)|(?<=:)(?=//)|(?<=\w)(?=\.\w)")
WORD_JOINER = "\u2060"


def telegram(text: str) -> str:
    """HTML in which Telegram finds no address, no @name, no #tag and no /command either: it looks for them in any text."""
    return html(_SEEN_BY_TELEGRAM.sub(WORD_JOINER, text))


def slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_MARKDOWN = re.compile(r"([\\`*_\[\]()#|~>@<]|:(?=//))")


def markdown(text: str) -> str:
    """Markdown with backslash escapes: Discord. A mention needs its @ or < in the plain."""
    return _MARKDOWN.sub(r"\\\1", text)


_LOOKALIKES = str.maketrans({"<": "＜", ">": "＞", "[": "［", "]": "］", "(": "（", ")": "）", "`": "ˋ", "*": "＊", "@": "＠", "#": "＃", "!": "！", "_": "＿", "~": "～"})  # fmt: skip


def lookalikes(text: str) -> str:
    """Of markups without an escape (DingTalk, WeCom): the signs that mean something become their full-width forms."""
    return text.translate(_LOOKALIKES)
