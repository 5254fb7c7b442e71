"""RunPod's billing history: a record for each pod (or volume) and day, its amount split by what it is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from fleet.providers.bills import BilledCharge, ChargeKind
from fleet.providers.rows import Row, moment, number
from fleet.providers.values import Money

TOTAL = "totalAmount"
# The API speaks in floating point: sums differ from their parts by less than this.
NOISE = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class History:
    """One address of the billing history: which field names what is billed, and what each amount is for."""

    path: str
    named: str
    parts: Mapping[str, ChargeKind]
    # Parts that another address tells in more detail.
    elsewhere: tuple[str, ...] = ()
    of_machines: bool = False


HISTORIES = (
    History(
        "/v2/billing/pods",
        "podId",
        {"gpuAmount": ChargeKind.COMPUTE, "cpuAmount": ChargeKind.COMPUTE, "diskAmount": ChargeKind.DISK},
        of_machines=True,
    ),
    History(
        "/v2/billing/network-volumes",
        "networkVolumeId",
        {"standardAmount": ChargeKind.NETWORK_VOLUME, "highPerformanceAmount": ChargeKind.NETWORK_VOLUME},
    ),
    History(
        "/v2/billing",
        "",
        {
            "serverlessGpuAmount": ChargeKind.OTHER,
            "serverlessCpuAmount": ChargeKind.OTHER,
            "serverlessDiskAmount": ChargeKind.OTHER,
            "serverlessFeeAmount": ChargeKind.OTHER,
            "endpointAmount": ChargeKind.OTHER,
            "clusterGpuAmount": ChargeKind.COMPUTE,
            "clusterDiskAmount": ChargeKind.DISK,
            "clusterNetworkingAmount": ChargeKind.EGRESS,
        },
        elsewhere=(
            "podGpuAmount",
            "podCpuAmount",
            "podDiskAmount",
            "storageStandardAmount",
            "storageHighPerformanceAmount",
        ),
    ),
)


def lines_of(record: Row, history: History) -> Iterator[BilledCharge]:
    """What is in the total and in no part that is known today is a line of its own."""
    start, end = required(record["startTime"]), required(record["endTime"])
    name = str(record[history.named]) if history.named else ""
    amounts = {part: amount(record[part]) for part in (*history.parts, *history.elsewhere)}
    rest = amount(record[TOTAL]) - sum(amounts.values(), Decimal(0))
    told = {part: amounts[part] for part in history.parts} | ({TOTAL: rest} if abs(rest) >= NOISE else {})
    for part, value in told.items():
        if value:
            yield BilledCharge(
                line_id=f"{history.path}:{name}:{start.isoformat()}:{part}",
                kind=history.parts.get(part, ChargeKind.OTHER),
                raw_kind=part,
                start=start,
                end=end,
                amount=Money(value, "USD"),
                external_id=name if history.of_machines else "",
                resource="" if history.of_machines else name,
            )


def required(word: str) -> datetime:
    read = moment(word)
    if read is None:
        raise ValueError(word)
    return read


def amount(value: object) -> Decimal:
    read = number(value)
    if read is None:
        raise TypeError(value)
    return read
