"""What a launcher is given and what it makes. No launcher reads a clock, a network or a disk beside its own scripts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from planner.catalogue.gpus import Gpu
from planner.reasons import Reason
from planner.runs import ServingRun, TrainingRun

SCRIPTS = Path(__file__).resolve().parent / "scripts"
# A host name or an address, as it stands in a host file and in host:port.
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[?[0-9A-Fa-f:]+:[0-9A-Fa-f]+\]?")
_DRIVER = re.compile(r"\d{3}(\.\d{1,4}){0,2}")
_TEXT_LIMIT = 1000

Where = Literal["every-node", "first-node", "one-machine"]


class LaunchError(ValueError):
    """An input that no command can be made of; `field` names it, `problem` says what is wrong."""

    def __init__(self, field: str, problem: Reason) -> None:
        super().__init__(f"{field}: {problem.key}")
        self.field = field
        self.problem = problem


def checked_text(field: str, text: str) -> str:
    """A path or an id. Raises LaunchError for what a shell or a tool would misread however it is quoted."""
    if not text.strip():
        raise LaunchError(field, Reason("launch.error.empty"))
    if len(text) > _TEXT_LIMIT or not text.isprintable():
        raise LaunchError(field, Reason("launch.error.unprintable", {"limit": _TEXT_LIMIT}))
    if text.startswith("-"):
        raise LaunchError(field, Reason("launch.error.dash"))
    return text


@dataclass(frozen=True, slots=True)
class Place:
    """The machines: `hosts` by the names under which they reach each other, the first one leads. `driver` None: not known yet."""

    gpu: Gpu
    gpus_per_node: int = 1
    hosts: tuple[str, ...] = ("localhost",)
    driver: str | None = None
    port: int = 29500
    # The network interface between the nodes; None lets NCCL choose.
    interface: str | None = None

    def __post_init__(self) -> None:
        for host in self.hosts:
            if not _HOST.fullmatch(host):
                raise LaunchError("hosts", Reason("launch.error.host", {"host": host[:80]}))
        if not (self.hosts and 1 <= self.gpus_per_node <= 128):
            raise LaunchError("gpus_per_node", Reason("launch.error.count"))
        if not 1024 <= self.port <= 65535:
            raise LaunchError("port", Reason("launch.error.port"))
        if self.driver is not None and not _DRIVER.fullmatch(self.driver):
            raise LaunchError("driver", Reason("launch.error.driver"))
        if self.interface is not None:
            checked_text("interface", self.interface)

    @property
    def gpus(self) -> int:
        return len(self.hosts) * self.gpus_per_node

    @property
    def several_nodes(self) -> bool:
        return len(self.hosts) > 1

    @property
    def leader(self) -> str:
        return self.hosts[0]

    @property
    def everywhere(self) -> Where:
        """For a command that every node runs."""
        return "every-node" if self.several_nodes else "one-machine"

    @property
    def once(self) -> Where:
        return "first-node" if self.several_nodes else "one-machine"

    def environment(self) -> dict[str, str]:
        """What NCCL must be told on these cards and this network."""
        chosen: dict[str, str] = {}
        if self.gpus > 1 and self.gpu.peer.startswith("none"):
            # The driver refuses peer access; NCCL would try it, and InfiniBand through it.
            chosen |= {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}
        if self.several_nodes and self.interface:
            chosen |= {"NCCL_SOCKET_IFNAME": self.interface, "GLOO_SOCKET_IFNAME": self.interface}
        return chosen


@dataclass(frozen=True, slots=True)
class TrainingOrder:
    """`model` and `dataset`: ids on a hub, or paths. `learning_rate` None: what is usual for the method.

    `steps` of the optimizer in the whole run; None: not known, and whoever starts it says so.
    """

    run: TrainingRun
    place: Place
    model: str
    dataset: str
    output: str = "output"
    epochs: float = 1.0
    learning_rate: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for field in ("model", "dataset", "output"):
            checked_text(field, getattr(self, field))
        check_gpus(self.run.layout.gpus, self.place)


@dataclass(frozen=True, slots=True)
class ServingOrder:
    """The server listens on `host`:`port`; clients give the key that the environment variable API_KEY holds."""

    run: ServingRun
    place: Place
    model: str
    name: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000

    def __post_init__(self) -> None:
        checked_text("model", self.model)
        if self.name is not None:
            checked_text("name", self.name)
        check_gpus(self.run.layout.gpus, self.place)


def check_gpus(wanted: int, place: Place) -> None:
    if wanted != place.gpus:
        raise LaunchError("hosts", Reason("launch.error.gpus", {"layout": wanted, "place": place.gpus}))


Order: TypeAlias = TrainingOrder | ServingOrder


@dataclass(frozen=True, slots=True)
class File:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """`text` is for bash, in the directory of the files; NODE_RANK, where it stands, is 0 on the first host and counts up."""

    where: Where
    text: str
    note: Reason


@dataclass(frozen=True, slots=True)
class Artefact:
    launcher: str
    files: tuple[File, ...]
    commands: tuple[Command, ...]
    notes: tuple[Reason, ...] = ()


def no_frameworks(_order: Order) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Launcher:
    """`unfit` says why an order cannot be launched this way, None if it can; `write` is only called then.

    `frameworks` gives the names of frameworks.csv that the order needs beside torch; `packages` names of planner.launchers.packages.
    """

    key: str
    unfit: Callable[[Order], Reason | None]
    write: Callable[[Order], Artefact]
    frameworks: Callable[[Order], tuple[str, ...]] = no_frameworks
    packages: tuple[str, ...] = ()


def first_reason(rules: Iterable[tuple[bool, Reason]]) -> Reason | None:
    """The reason of the first rule that is broken."""
    return next((why for broken, why in rules if broken), None)


@cache
def script(name: str) -> File:
    """A script of planner/launchers/scripts, as it is."""
    return File(name, (SCRIPTS / name).read_text(encoding="utf-8"))


Option = tuple[str, object]


def options(pairs: Sequence[Option]) -> list[str]:
    """("rank", 8) as --rank=8, ("packed", True) as --packed; False and None are left out."""
    words: list[str] = []
    for name, value in pairs:
        if value is True:
            words.append(f"--{name}")
        elif value is not False and value is not None:
            words.append(f"--{name}={value:g}" if isinstance(value, float) else f"--{name}={value}")
    return words


def command_text(words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """One command, each option on a line of its own, each word quoted but what the shell must expand (see Shell)."""
    lines = [" ".join(f"{name}={quoted(value)}" for name, value in (environment or {}).items())]
    fresh = True
    for word in words:
        if fresh or word.startswith("--") or lines[-1].startswith("--") or word.endswith(".py"):
            lines.append(quoted(word))
        else:
            lines[-1] += f" {quoted(word)}"
        fresh = False
    return " \\\n  ".join(line for line in lines if line)


class Shell(str):
    """A word that the shell must expand: "${NODE_RANK:?…}". Never made of anything that a person typed."""

    __slots__ = ()


def quoted(word: str) -> str:
    return str(word) if isinstance(word, Shell) else shlex.quote(word)


NODE_RANK = Shell('"${NODE_RANK:?0 on the first host, 1 on the second, and so on}"')
