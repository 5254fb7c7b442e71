"""A report as plain text, to be sent to whoever rents the machine out: which machine, when, how it was measured, and every figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

from django.utils.translation import gettext as _

from fleet.formats import bytes_text
from fleet.quality.acceptance.measured import Measured
from fleet.quality.acceptance.words import RESULTS, SOURCES, check_text, figure_text, verdict_text
from fleet.quality.models import AcceptanceReport

# Names come from machines: a line stays a line.
NAME_LENGTH = 80


def evidence_text(report: AcceptanceReport) -> str:
    return "\n".join((*_head(report), "", *_lines(report), "", *_method(report))) + "\n"


def _head(report: AcceptanceReport) -> Iterator[str]:
    machine = report.instance
    yield _("Test of a rented machine")
    facts = {
        _("Machine"): machine.external_id,
        _("Name"): machine.name,
        _("Type"): machine.instance_type,
        _("Region"): machine.region,
        _("Tested at"): report.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        _("Result"): verdict_text(report.verdict),
    }
    yield from (f"{label}: {_line(value)}" for label, value in facts.items() if value)


def _lines(report: AcceptanceReport) -> Iterator[str]:
    for check in report.checks:
        measured = figure_text(check["measured"], check["unit"])
        if not measured:
            continue
        yield f"- {check_text(check['name'])}: {_line(measured)}{_against(check)}"
    for row in Measured(report.measured).gpus:
        yield "  " + _card(row)


def _against(check: Mapping[str, Any]) -> str:
    promised = figure_text(check["promised"], check["unit"])
    if not promised or not check["source"]:
        return ""
    said = {"promised": _line(promised), "source": SOURCES.get(check["source"], check["source"])}
    held = _("against %(promised)s (%(source)s)") % said
    return f" {held}: {RESULTS.get(check['result'], check['result'])}"


def _card(row: Mapping[str, Any]) -> str:
    size = row.get("memory_total_bytes")
    parts = [
        str(row.get("uuid") or ""),
        str(row.get("name") or ""),
        bytes_text(size) if isinstance(size, int) else "",
        str(row.get("pci_bus_id") or ""),
        f"PCIe {row['pcie_generation']} x{row['pcie_width']}"
        if "pcie_generation" in row and "pcie_width" in row
        else "",
    ]
    return _line(", ".join(part for part in parts if part), 200)


def _method(report: AcceptanceReport) -> Iterator[str]:
    measured = report.measured
    driver, disk = (measured.get("gpu") or {}).get("driver"), measured.get("disk") or {}
    yield _("How it was measured:")
    if driver:
        yield _("GPUs and links: by NVML, driver %(driver)s.") % {"driver": _line(str(driver))}
    if Measured(measured).matrix_type:
        yield _(
            "Rates of GPUs: copies of 256 MiB from pinned memory, and products of 8192 x 8192 matrices, by PyTorch."
        )
    if disk:
        tool = "fio" if disk.get("by") == "fio" else _("a built-in test")
        yield _("Disk: %(tool)s, past the page cache where it can be, in one file at %(place)s.") % {
            "tool": tool,
            "place": _line(str(disk.get("place") or "")),
        }
    yield _("Processor: the same fixed work on one and on all vCPUs.")


def _line(text: object, limit: int = NAME_LENGTH) -> str:
    return "".join(letter for letter in str(text)[:limit] if letter.isprintable())
