"""All tables of planner/data at once: they load, their figures lie where such figures lie, and what they refer to exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from planner.catalogue.gpus import GIB, Gpu, gpus
from planner.catalogue.models import models
from planner.catalogue.prices import purchase_prices, rent_prices
from planner.catalogue.rows import DATA, CatalogueError
from planner.catalogue.software_tables import software
from planner.catalogue.symptoms import symptoms
from planner.parameters import count_parameters

# A column in another unit would be off by 8, 1000 or 1024.
RATES_FLOPS = (1e11, 5e16)
BANDWIDTHS = (1e11, 3e13)
WATTS = (30, 3000)
# What the driver shows of the label: 0.93 with ECC on GDDR6, 1.03 where makers count in powers of ten.
SHARES_OF_LABEL = (0.9, 1.05)
GPU_HOURS = (0.01, 100)
PURCHASES = (100, 500_000)
# Of the counted parameters from those that the table says its shape has.
MOST_OFF = 0.005


def check_catalogue() -> tuple[dict[str, int], list[str]]:
    """Rows of each table, and every fault that was found; a table that does not load is one fault."""
    counts: dict[str, int] = {}
    faults: list[str] = []
    for name, load, check in _TABLES:
        try:
            counts[name] = load()
            faults.extend(check())
        except CatalogueError as error:
            faults.append(str(error))
    faults.extend(_unread())
    return counts, faults


def _outside(what: str, value: float | None, limits: tuple[float, float]) -> Iterator[str]:
    if value is not None and not limits[0] <= value <= limits[1]:
        yield f"{what}: {value:g} does not lie between {limits[0]:g} and {limits[1]:g}"


def _check_gpus() -> Iterator[str]:
    for gpu in gpus().values():
        yield from _gpu_faults(gpu)


def _gpu_faults(gpu: Gpu) -> Iterator[str]:
    name = f"gpus.csv, {gpu.id}"
    for rate in ("bf16", "fp16", "fp8", "int8", "fp4", "tf32"):
        yield from _outside(f"{name}, {rate}", gpu.rate(rate), RATES_FLOPS)
    yield from _outside(f"{name}, memory bandwidth", gpu.memory_bandwidth, BANDWIDTHS)
    yield from _outside(f"{name}, board power", gpu.board_watts, WATTS)
    yield from _outside(f"{name}, memory of its label", gpu.memory_bytes / (gpu.label_gib * GIB), SHARES_OF_LABEL)


def _check_models() -> Iterator[str]:
    for model in models().values():
        counts = count_parameters(model.shape)
        counted = counts.total - counts.vision
        if abs(counted / model.parameters_from_shape - 1) > MOST_OFF:
            yield f"models.csv, {model.id}: its shape has {counted:,} parameters, the table says {model.parameters_from_shape:,}"


def _check_prices() -> Iterator[str]:
    for price in rent_prices():
        name = f"prices.csv, {price.gpu_id}, {price.provider}"
        if price.gpu_id not in gpus():
            yield f"{name}: gpus.csv has no such GPU"
        yield from _outside(f"{name}, price of a GPU-hour", float(price.per_gpu_hour), GPU_HOURS)
        if price.gpus > price.most_gpus:
            yield f"{name}: gpus is more than most_gpus"


def _check_purchases() -> Iterator[str]:
    for gpu_id, price in purchase_prices().items():
        if gpu_id not in gpus():
            yield f"purchase_prices.csv, {gpu_id}: gpus.csv has no such GPU"
        yield from _outside(f"purchase_prices.csv, {gpu_id}, price", float(price.price), PURCHASES)


def _no_check() -> Iterator[str]:
    """The loader has checked it."""
    return iter(())


def _software_rows() -> int:
    tables = software()
    parts = (tables.toolkits, tables.branches, tables.architectures, tables.cudnn, tables.wheels)
    return sum(map(len, parts)) + sum(map(len, tables.releases.values()))


Check = Callable[[], Iterator[str]]
_SOFTWARE = "cuda_driver, driver_branches, arch, cudnn, torch_wheels, frameworks"
_TABLES: tuple[tuple[str, Callable[[], int], Check], ...] = (
    ("gpus", lambda: len(gpus()), _check_gpus),
    ("models", lambda: len(models()), _check_models),
    ("prices", lambda: len(rent_prices()), _check_prices),
    ("purchase_prices", lambda: len(purchase_prices()), _check_purchases),
    (_SOFTWARE, _software_rows, _no_check),
    ("symptoms", lambda: len(symptoms()), _no_check),
)


def _unread(folder: Path = DATA) -> Iterator[str]:
    """A table that nothing here reads would be checked by nobody."""
    known: Mapping[str, None] = dict.fromkeys(", ".join(name for name, _load, _check in _TABLES).split(", "))
    for path in sorted(folder.glob("*.csv")):
        if path.stem not in known:
            yield f"{path.name}: catalog_check does not read it"
