"""A runbook as Markdown, in the reader's language. What machines reported is escaped; what people of the team wrote is theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.pitfalls import Met
from fleet.inventory.environments.versions import Line, Said, Versions
from fleet.inventory.environments.words import label, source_words
from fleet.teams.fields import one_line

_MEANING = re.compile(r"([\\`*_{}\[\]()#+!|~>&$-])")
_FENCES = re.compile(r"`{3,}")


def plain(text: str) -> str:
    """One line that Markdown shows as it is; no HTML, no link, no second cell of a table."""
    return _MEANING.sub(r"\\\1", one_line(text)).replace("<", "&lt;")


def fenced(text: str, language: str = "sh") -> str:
    """Whatever the text holds, the fence is longer."""
    longest = max((len(run) for run in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def runbook_markdown(*, environment: Environment, versions: Versions, pitfalls: Iterable[Met], verify: str) -> str:
    parts = [
        f"# {plain(environment.name)}",
        *image_line(environment),
        f"## {_('Versions')}",
        version_table(versions),
        *section(_("Launch commands"), fenced(environment.commands) if environment.commands.strip() else ""),
        *section(_("Pitfalls"), "\n\n".join(pitfall_parts(environment, pitfalls))),
        *section(_("Notes"), environment.notes.strip()),
        *section(_("Check what is there"), fenced(verify)),
    ]
    return "\n\n".join(parts) + "\n"


def image_line(environment: Environment) -> list[str]:
    named = environment.reference or (environment.image.external_id if environment.image else "")
    return [_("Starts from %(image)s.") % {"image": plain(named)}] if named else []


def section(title: str, body: str) -> list[str]:
    return [f"## {title}", body] if body else []


def version_table(versions: Versions) -> str:
    if not versions.lines:
        return _("Nothing is known of it.")
    head = [f"| {_('Part')} | {_('Version')} | {_('Who says so')} |", "| --- | --- | --- |"]
    return "\n".join([*head, *(row for line in versions.lines for row in table_rows(line))])


def table_rows(line: Line) -> Iterator[str]:
    for number, said in enumerate(line.said):
        name = plain(label(line.name)) if number == 0 else ""
        yield f"| {name} | {plain(said.value)} | {said_by(said)} |"


def said_by(said: Said) -> str:
    words = plain(source_words(said.kind, said.who))
    if said.at is None:
        return words
    return f"{words}, {formats.date_format(timezone.localtime(said.at), 'Y-m-d H:i')}"


def pitfall_parts(environment: Environment, pitfalls: Iterable[Met]) -> Iterator[str]:
    if environment.pitfalls.strip():
        yield environment.pitfalls.strip()
    told = [pitfall_item(each) for each in pitfalls]
    if told:
        yield "\n".join(told)


def pitfall_item(met: Met) -> str:
    concerned = f" ({', '.join(plain(name) for name in met.gpus)})" if met.gpus else ""
    fix = f" {plain(met.fix)}" if met.fix else ""
    return f"- {plain(met.text)}{concerned}{fix} “{plain(met.message)}”"
