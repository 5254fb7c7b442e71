"""What people will meet with an environment, in sentences."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.inventory.environments.versions import Versions
from planner.compatibility.pitfalls import Pitfall, pitfalls
from planner.web.words import sentence


@dataclass(frozen=True, slots=True)
class Met:
    """`message`: how it ends, as the program prints it. `gpus`: names of those that it concerns; () = whatever the GPU."""

    symptom: str
    message: str
    text: str
    fix: str
    gpus: tuple[str, ...]


def pitfalls_of(versions: Versions) -> tuple[Met, ...]:
    """Where nobody says whether it is a container, those of containers are among them."""
    found = pitfalls(versions.known, in_container=versions.is_container is not False)
    return tuple(met(each) for each in found)


def met(pitfall: Pitfall) -> Met:
    return Met(
        symptom=pitfall.symptom.id,
        message=pitfall.symptom.example,
        text=sentence(pitfall.why),
        fix=sentence(pitfall.fix) if pitfall.fix else "",
        gpus=pitfall.gpus,
    )
