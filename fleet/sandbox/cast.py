"""The machines of the sandbox: what a mid-sized lab might rent, with one of everything that goes wrong.

Prices per GPU and hour lie inside the range that public price lists showed in autumn 2026; disks cost what clouds
usually take for a GB and month.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from zlib import crc32

from fleet.sandbox import patterns
from fleet.sandbox.hardware import MODELS, GpuModel
from fleet.sandbox.patterns import HOUR, LOST_AT, MINUTE, Pattern

HOURS_PER_MONTH = 730
DISK_PER_GB_MONTH = Decimal("0.10")


@dataclass(frozen=True, slots=True)
class Happening:
    """An event that the machine's agent reports, at `t` seconds since the sandbox's birth."""

    t: float
    kind: str
    detail: str
    code: int | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine type at a price. `market`: on_demand, spot or prepaid; `tenancy`: one of the product's own words."""

    name: str
    gpu: GpuModel
    gpu_count: int
    vcpus: int
    ram_gib: int
    tenancy: str
    gpu_price: Decimal
    spot_gpu_price: Decimal | None = None
    regions: tuple[str, ...]
    host_share: Decimal | None = None

    def price_per_hour(self, market: str) -> Decimal | None:
        """For the whole machine; None where the market has none of it."""
        price = self.spot_gpu_price if market == "spot" else self.gpu_price
        return None if price is None else price * self.gpu_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One machine that is there from the start. `pattern` is one for all GPUs or one for each. Times are days before the birth."""

    id: str
    name: str
    offer: str
    region: str
    pattern: Pattern | Sequence[Pattern]
    project: str
    owner: str
    image: str
    market: str = "on_demand"
    disk_gb: int = 500
    status: str = "running"
    age_days: float = 5.0
    lease_hours: float | None = None
    silent_from: float | None = None
    reclaimed_every_hours: float | None = None
    happenings: tuple[Happening, ...] = ()


def offer(name: str, model: str, count: int, size: tuple[int, int], price: str, **more: object) -> Offer:
    """size: vCPUs and GiB of RAM."""
    return Offer(
        name=name, gpu=MODELS[model], gpu_count=count, vcpus=size[0], ram_gib=size[1], gpu_price=Decimal(price),
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


SOUTH, WEST, EAST = "us-south-1", "us-west-2", "us-east-1"
NORTH_EU, WEST_EU, CN, ASIA = "eu-north-1", "eu-west-1", "cn-north-2", "ap-tokyo-1"
HOST, GPU, COMMUNITY, FRACTION = "dedicated_host", "dedicated_gpu", "community_host", "fraction"

OFFERS = {
    entry.name: entry
    for entry in (
        offer("sb.h100x8", "H100 SXM", 8, (208, 1800), "2.99", tenancy=HOST, spot_gpu_price=Decimal("1.65"), regions=(SOUTH, WEST, NORTH_EU)),
        offer("sb.h200x4", "H200", 4, (96, 900), "3.59", tenancy=GPU, regions=(NORTH_EU,)),
        offer("sb.b200x2", "B200", 2, (52, 720), "5.98", tenancy=GPU, regions=(WEST,)),
        offer("sb.a100-80x8", "A100 SXM 80 GB", 8, (124, 1800), "1.79", tenancy=HOST, spot_gpu_price=Decimal("0.98"), regions=(EAST, NORTH_EU)),
        offer("sb.a100-80x4", "A100 SXM 80 GB", 4, (62, 900), "1.64", tenancy=GPU, spot_gpu_price=Decimal("0.94"), regions=(EAST, NORTH_EU)),
        offer("sb.a100-40x8", "A100 SXM 40 GB", 8, (96, 1152), "1.29", tenancy=GPU, spot_gpu_price=Decimal("0.74"), regions=(EAST,)),
        offer("sb.a800x4", "A800 SXM 80 GB", 4, (56, 400), "0.94", tenancy=GPU, regions=(CN,)),
        offer("sb.l40sx4", "L40S", 4, (96, 768), "1.09", tenancy=GPU, spot_gpu_price=Decimal("0.62"), regions=(WEST_EU, ASIA)),
        offer("sb.l40sx2", "L40S", 2, (40, 320), "1.09", tenancy=GPU, regions=(WEST_EU, ASIA)),
        offer("sb.l40s-half", "L40S", 1, (10, 64), "0.58", tenancy=FRACTION, regions=(ASIA,), host_share=Decimal("0.5")),
        offer("sb.l4x2", "L4", 2, (24, 96), "0.71", tenancy=GPU, regions=(WEST_EU, ASIA)),
        offer("sb.l4x1", "L4", 1, (12, 48), "0.71", tenancy=GPU, regions=(WEST_EU, ASIA)),
        offer("sb.a10gx4", "A10G", 4, (48, 192), "1.42", tenancy=HOST, regions=(EAST,)),
        offer("sb.t4x2", "T4", 2, (16, 60), "0.36", tenancy=GPU, regions=(EAST,)),
        offer("cm.4090x8", "RTX 4090", 8, (128, 512), "0.39", tenancy=COMMUNITY, spot_gpu_price=Decimal("0.26"), regions=(NORTH_EU, CN)),
        offer("cm.4090x4", "RTX 4090", 4, (64, 256), "0.40", tenancy=COMMUNITY, spot_gpu_price=Decimal("0.27"), regions=(NORTH_EU,)),
        offer("cm.4090x1", "RTX 4090", 1, (16, 64), "0.44", tenancy=COMMUNITY, regions=(NORTH_EU, CN)),
        offer("cm.3090x2", "RTX 3090", 2, (24, 96), "0.22", tenancy=COMMUNITY, regions=(NORTH_EU,)),
    )
}  # fmt: skip

IMAGES = {
    "img-train-24": "pytorch-train 2.4",
    "img-train-23": "pytorch-train 2.3",
    "img-serve-11": "vllm-serve 1.1",
    "img-notebook-07": "notebook 0.7",
    "img-base-22": "ubuntu-22.04-cuda-12.8",
}

MEI, PRIYA, OMAR, TOMAS, JONAS, ANNA, LI = (
    "Mei Lin",
    "Priya Nair",
    "Omar Haddad",
    "Tomás Ruiz",
    "Jonas Lind",
    "Anna Weber",
    "Li Wei",
)

MEMBERS = (
    Member(id="sb-0a1c41", name="llm-pre-01", offer="sb.h100x8", region=SOUTH, pattern=patterns.training, project="atlas-7b", owner=PRIYA, image="img-train-24", disk_gb=4000, age_days=16),
    Member(id="sb-0a1c42", name="llm-pre-02", offer="sb.h100x8", region=SOUTH, pattern=patterns.training, project="atlas-7b", owner=PRIYA, image="img-train-24", disk_gb=4000, age_days=16),
    Member(id="sb-0a1c43", name="llm-pre-03", offer="sb.h100x8", region=SOUTH, pattern=patterns.stalled, project="atlas-7b", owner=PRIYA, image="img-train-24", disk_gb=4000, age_days=9),
    Member(id="sb-03f7d0", name="vision-train-01", offer="sb.h100x8", region=WEST, pattern=patterns.starved, project="vision", owner=MEI, image="img-train-24", disk_gb=6000, age_days=14),
    Member(id="sb-11e5a9", name="eval-a100-01", offer="sb.a100-80x8", region=EAST, pattern=patterns.forgotten_notebook, project="eval", owner=MEI, image="img-train-23", disk_gb=1000, age_days=6),
    Member(id="sb-11e5b4", name="batch-a100-01", offer="sb.a100-40x8", region=EAST, pattern=[*[patterns.training] * 5, patterns.falls_off_the_bus, *[patterns.training] * 2], project="eval", owner=OMAR, image="img-train-23", market="spot", disk_gb=1000, age_days=3,
           happenings=(Happening(-9.4 * HOUR, "xid", "Graphics Engine Exception", 13, 2), Happening(LOST_AT, "xid", "GPU has fallen off the bus.", 79, 5), Happening(LOST_AT + 1, "gpu_lost", "GPU is lost", None, 5))),
    Member(id="sb-11e5c7", name="batch-a100-02", offer="sb.a100-80x4", region=EAST, pattern=patterns.training, project="eval", owner=OMAR, image="img-train-23", market="spot", disk_gb=1000, age_days=3, silent_from=-14 * MINUTE),
    Member(id="sb-2b90e2", name="ft-a100-01", offer="sb.a100-80x4", region=NORTH_EU, pattern=patterns.training, project="support-ft", owner=TOMAS, image="img-train-24", disk_gb=1500, age_days=4,
           happenings=(Happening(-5.2 * HOUR, "xid", "GPU memory page fault", 31, 1),)),
    Member(id="sb-2b90f1", name="serve-h200-01", offer="sb.h200x4", region=NORTH_EU, pattern=patterns.serving, project="serving", owner=OMAR, image="img-serve-11", disk_gb=2000, age_days=41),
    Member(id="sb-44d018", name="serve-l40s-01", offer="sb.l40sx4", region=WEST_EU, pattern=patterns.serving, project="serving", owner=OMAR, image="img-serve-11", disk_gb=800, age_days=62),
    Member(id="sb-44d019", name="serve-l40s-02", offer="sb.l40sx4", region=WEST_EU, pattern=[patterns.serving] * 2 + [patterns.free] * 2, project="serving", owner=OMAR, image="img-serve-11", disk_gb=800, age_days=62),
    Member(id="sb-44d022", name="infer-l4-01", offer="sb.l4x2", region=ASIA, pattern=patterns.serving, project="serving", owner=OMAR, image="img-serve-11", disk_gb=300, age_days=30),
    Member(id="sb-44d031", name="router-l40s-01", offer="sb.l40s-half", region=ASIA, pattern=patterns.serving, project="serving", owner=OMAR, image="img-serve-11", disk_gb=120, age_days=30),
    Member(id="sb-7c6650", name="sweep-4090-01", offer="cm.4090x8", region=NORTH_EU, pattern=patterns.throttling, project="sweeps", owner=JONAS, image="img-train-24", market="spot", disk_gb=600, age_days=11),
    Member(id="sb-7c6651", name="sweep-4090-02", offer="cm.4090x8", region=NORTH_EU, pattern=patterns.noisy_neighbour, project="sweeps", owner=JONAS, image="img-train-24", disk_gb=600, age_days=8),
    Member(id="sb-7c6652", name="sweep-4090-03", offer="cm.4090x4", region=NORTH_EU, pattern=patterns.training, project="sweeps", owner=JONAS, image="img-train-24", market="spot", disk_gb=400, age_days=2, reclaimed_every_hours=5.0),
    Member(id="sb-9e0b77", name="dev-4090-01", offer="cm.4090x1", region=NORTH_EU, pattern=patterns.forgotten_notebook, project="playground", owner=TOMAS, image="img-notebook-07", disk_gb=150, age_days=3),
    Member(id="sb-9e0b7c", name="dev-l40s-01", offer="sb.l40sx2", region=WEST_EU, pattern=[patterns.notebook, patterns.free], project="playground", owner=ANNA, image="img-notebook-07", disk_gb=300, age_days=7),
    Member(id="sb-9e0b80", name="dev-l4-01", offer="sb.l4x1", region=ASIA, pattern=patterns.free, project="playground", owner=ANNA, image="img-notebook-07", disk_gb=200, age_days=12),
    Member(id="sb-9e0b91", name="render-3090-01", offer="cm.3090x2", region=NORTH_EU, pattern=patterns.free, project="playground", owner=ANNA, image="img-base-22", disk_gb=250, age_days=19),
    Member(id="sb-c00d15", name="cn-ft-01", offer="sb.a800x4", region=CN, pattern=patterns.training, project="cn-ft", owner=LI, image="img-train-23", market="prepaid", disk_gb=2000, age_days=25, lease_hours=20.0),
    Member(id="sb-d1f300", name="bench-b200-01", offer="sb.b200x2", region=WEST, pattern=patterns.free, project="atlas-7b", owner=PRIYA, image="img-train-24", disk_gb=1000, status="provisioning", age_days=0),
    Member(id="sb-e5a810", name="g5-dev-01", offer="sb.a10gx4", region=EAST, pattern=patterns.free, project="playground", owner=ANNA, image="img-base-22", disk_gb=1000, status="stopped", age_days=48),
    Member(id="sb-e5a811", name="ci-t4-01", offer="sb.t4x2", region=EAST, pattern=patterns.free, project="eval", owner=MEI, image="img-base-22", disk_gb=200, status="stopped", age_days=33),
)  # fmt: skip

# How long ago the machines that are off from the start were stopped.
STOPPED_DAYS = {"sb-e5a810": 19.0, "sb-e5a811": 4.0}
# Stopped and started again before the birth: (days before it, days before it).
PAUSES = {
    "sb-03f7d0": ((9.4, 8.7),),
    "sb-2b90f1": ((33.5, 31.0),),
    "sb-44d031": ((20.2, 18.9), (6.6, 5.9)),
    "sb-9e0b80": ((7.3, 4.6),),
    "sb-9e0b91": ((12.5, 10.1),),
}
# Rented and ended before the birth: no listing names them any more.
PAST_MEMBERS = (
    Member(id="sb-0a1c3e", name="llm-pre-00", offer="sb.h100x8", region=SOUTH, pattern=patterns.training, project="atlas-7b", owner=PRIYA, image="img-train-23", disk_gb=4000, status="terminated", age_days=43),
    Member(id="sb-11e590", name="eval-a100-00", offer="sb.a100-80x4", region=EAST, pattern=patterns.notebook, project="eval", owner=MEI, image="img-train-23", disk_gb=1000, status="terminated", age_days=41),
    Member(id="sb-5d2e10", name="ablation-a100-01", offer="sb.a100-80x8", region=NORTH_EU, pattern=patterns.training, project="vision", owner=MEI, image="img-train-23", disk_gb=2000, status="terminated", age_days=40),
    Member(id="sb-c00d09", name="cn-eval-01", offer="sb.a800x4", region=CN, pattern=patterns.notebook, project="cn-ft", owner=LI, image="img-train-23", disk_gb=800, status="terminated", age_days=34),
)  # fmt: skip
ENDED_DAYS = {"sb-0a1c3e": 15.7, "sb-11e590": 5.8, "sb-5d2e10": 11.3, "sb-c00d09": 2.2}
OFF_DAYS = STOPPED_DAYS | ENDED_DAYS
# What an offer cost per GPU until so many days before the birth.
EARLIER_PRICES = {"sb.h100x8": (12.2, Decimal("3.19"))}
# Per GPU and GB-month, where the provider asked for yuan.
YUAN_PRICES = {"sb-c00d09": (Decimal("6.60"), Decimal("0.70"))}
PROJECTS = {"atlas-7b": "Atlas 7B", "vision": "Vision", "eval": "Evaluation", "support-ft": "Support fine-tuning", "serving": "Serving", "sweeps": "Sweeps", "playground": "Playground", "cn-ft": "China fine-tuning"}  # fmt: skip


def member_of(machine_id: str) -> Member | None:
    """None for a machine that somebody created later."""
    return next((member for member in MEMBERS if member.id == machine_id), None)


def gpu_patterns(member: Member) -> list[Pattern]:
    count = OFFERS[member.offer].gpu_count
    return [member.pattern] * count if callable(member.pattern) else list(member.pattern)


def seed_of(machine_id: str, gpu: int = 0) -> int:
    """The same for ever: what a machine does must not change with a restart of the sandbox."""
    return (crc32(machine_id.encode()) & 0xFFFFFF) << 8 | gpu


def storage_price_per_hour(disk_gb: int, per_gb_month: Decimal = DISK_PER_GB_MONTH) -> Decimal:
    return (disk_gb * per_gb_month / HOURS_PER_MONTH).quantize(Decimal("0.000001"))
