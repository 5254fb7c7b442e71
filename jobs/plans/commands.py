"""A launcher's files and commands as a job runs them: one script for every machine, and files in which the real hosts are filled in later. Pure.

The planner writes hosts, port, data and output as names that stand for them. In the command they become variables of the job's environment; in
files, which no shell reads, marks that the runner fills when it knows the machines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.launchers.base import Artefact, Command, Place
from planner.reasons import Reason

# Stand for what is not known yet. Of letters that no launcher quotes; the port is one that nobody else would write.
HOST, PORT, DATA, OUTPUT = "rackrent-node-", 29_499, "rackrent-data", "rackrent-output"
# Where samples lie that are uploaded or come with a repository.
USUAL_DATA = "train.jsonl"
INSTALL = "install.sh"
# Answered by the readiness of a job that serves.
_PROBE = "launch.note.probe"
# A job's server listens on its machine's own loopback, which only our SSH and the gateway before it reach: they ask for no key.
_KEY = re.compile(r" *(?:\\\n *)?--api-key=\"\$\{API_KEY:\?[^}]*\}\"")
LEFT_OUT = frozenset({"launch.note.api_key", "launch.note.install"})
_VARIABLES = (
    (re.compile(rf"{HOST}0:{PORT}"), '"$MASTER_ADDR:$MASTER_PORT"'),
    (re.compile(rf"{HOST}0\b"), '"$MASTER_ADDR"'),
    (re.compile(rf"\b{PORT}\b"), '"$MASTER_PORT"'),
    (re.compile(DATA), f'"${{RACKRENT_DATA:-{USUAL_DATA}}}"'),
    (re.compile(OUTPUT), '"${RACKRENT_CHECKPOINTS:-output}"'),
)
_MARKS = ((re.compile(rf"{HOST}(\d+)"), r"@HOST_\1@"), (re.compile(rf"\b{PORT}\b"), "@MASTER_PORT@"))
_FILLED = re.compile(r"@HOST_(\d{1,3})@|@(MASTER_PORT)@")
# ${NAME:?what it is for}, as launchers write what somebody has to say.
_ASKED = re.compile(r"\$\{([A-Z][A-Z0-9_]{1,60}):\?([^}]{0,200})\}")
_GIVEN = frozenset({"NODE_RANK"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A variable that has to be given a value, and what it is for."""

    name: str
    what: str


def hosts_for(place: Place) -> tuple[str, ...]:
    return tuple(f"{HOST}{number}" for number in range(len(place.hosts))) if place.several_nodes else ("127.0.0.1",)


def command_of(artefact: Artefact, words: Callable[[Reason], str]) -> str:
    """What every machine runs. `words`: a note in somebody's language."""
    commands = [each for each in artefact.commands if each.note.key != _PROBE]
    if len(commands) == 1 and commands[0].where != "first-node":
        return in_variables(commands[0].text)
    steps = ["set -e", *(["trap 'ray stop' EXIT"] if _starts_ray(artefact) else [])]
    for number, each in enumerate(commands):
        steps += [f"# {words(each.note)}", step_text(each, commands[number + 1 :])]
    return "\n".join(steps)


def step_text(command: Command, later: Sequence[Command]) -> str:
    """What is prepared on the first machine alone would not be there on the others: each has a directory of its own."""
    text = in_variables(command.text)
    if command.where == "first-node" and not any(each.where == "every-node" for each in later):
        return f'if [ "$NODE_RANK" = 0 ]; then\n{text}\nfi'
    return text


def _starts_ray(artefact: Artefact) -> bool:
    return any(file.name == "ray.sh" for file in artefact.files)


def in_variables(text: str) -> str:
    text = _KEY.sub("", text)
    for name, variable in _VARIABLES:
        text = name.sub(lambda _match, variable=variable: variable, text)  # type: ignore[misc]  # the default binds the loop's own value
    return text


def files_of(artefact: Artefact) -> list[dict[str, object]]:
    """As Job.files; `filled`: the runner has to put the hosts in."""
    found: list[dict[str, object]] = []
    for file in artefact.files:
        text = file.text
        for name, mark in _MARKS:
            text = name.sub(mark, text)
        found.append({"path": file.name, "text": text, **({"filled": True} if text != file.text else {})})
    return found


def filled(text: str, hosts: Sequence[str], port: str) -> str:
    """Raises IndexError for a host that there is not."""
    return _FILLED.sub(lambda match: port if match[2] else hosts[int(match[1])], text)


def asked_for(command: str, files: Sequence[dict[str, object]], *, installs: bool) -> tuple[Asked, ...]:
    """The variables without which the run, or its install script, stops at once."""
    texts = [command, *(str(file["text"]) for file in files if installs or file["path"] != INSTALL)]
    found = {match[1]: match[2] for text in texts for match in _ASKED.finditer(text)}
    return tuple(Asked(name, what) for name, what in found.items() if name not in _GIVEN)
