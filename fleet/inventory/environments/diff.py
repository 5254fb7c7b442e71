"""Two environments side by side. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from fleet.inventory.environments.versions import SINGLE, Versions

# Programs that run on one machine break on another by these; the rest mostly changes how they run.
DECISIVE = ("driver", "cuda", "cudnn", "nccl", "python", "torch", "tensorflow", "jax", "paddlepaddle-gpu", "vllm", "tensorrt-llm")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """`left`, `right`: "" where it is not known, or not there. `matters`: whether work that runs on one may break on the other by it."""

    name: str
    left: str
    right: str
    is_package: bool

    @property
    def differs(self) -> bool:
        return self.left != self.right

    @property
    def is_one_sided(self) -> bool:
        return not (self.left and self.right)

    @property
    def matters(self) -> bool:
        if not self.differs or self.name not in DECISIVE:
            return False
        # A package that is missing is missing; of what agents read, missing is only not known.
        return self.is_package or not self.is_one_sided

    @property
    def newer(self) -> str:
        """Which side is the newer one: "left", "right", or "" where nobody can say."""
        try:
            left, right = Version(self.left), Version(self.right)
        except InvalidVersion:
            return ""
        return "" if left == right else "left" if left > right else "right"


def rows_of(left: Versions, right: Versions) -> tuple[Row, ...]:
    """What matters first, then what differs, then the same; within each in the order of an environment."""
    lines = {line.name: line.is_package for versions in (left, right) for line in versions.lines}
    order = {name: number for number, name in enumerate((*SINGLE, "torch"))}
    names = sorted(lines, key=lambda name: (order.get(name, len(order)), name))
    rows = [Row(name, left.value(name), right.value(name), lines[name]) for name in names]
    return tuple(sorted(rows, key=lambda row: (not row.matters, not row.differs)))
