"""The agent's zipapp and its installer, as the dashboard hands them out."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

from fleet.telemetry.ingest.errors import UnavailableError

BUILD_SECONDS = 60.0
# Filled in the installer, where both stand inside double quotes and a parameter's default.
URL_MARK, SHA256_MARK = "@@PUBLIC_URL@@", "@@AGENT_SHA256@@"

_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]/_~%-]+")
_VERSION = re.compile(r'^__version__\s*(?::[^=]+)?=\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AgentFile:
    """One reproducible zipapp: the same sources give the same bytes on every server."""

    data: bytes
    sha256: str
    version: str


class AgentFiles:
    """Builds the zipapp once, in a process of its own: nothing here may import the agent."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.built: AgentFile | None = None

    async def build(self) -> AgentFile:
        """Raises UnavailableError with what the build said."""
        async with self._lock:
            if self.built is None:
                self.built = await _build()
            return self.built

    async def installer(self) -> tuple[bytes, str]:
        """The script for this dashboard, and its SHA-256."""
        file = await self.build()
        template = await asyncio.to_thread(_installer_template)
        script = fill_installer(template, url=public_url(), sha256=file.sha256).encode()
        return script, hashlib.sha256(script).hexdigest()


def public_url() -> str:
    """Where machines report: PUBLIC_URL, or this machine's own address, which serves its own agent at least."""
    return str(settings.PUBLIC_URL or settings.WEB_URL)


def install_line(secret: str) -> str:
    """What to paste into a shell of the machine, or to run at its first start."""
    address = shlex.quote(f"{public_url()}/agent/install.sh")
    return f"curl -fsSL {address} | sh -s -- --token {secret}"


@cache
def shipped_version() -> str:
    """The version of the agent that lies beside us, read and not imported."""
    found = _VERSION.search((Path(settings.BASE_DIR) / "agent" / "__init__.py").read_text())
    return found[1] if found else ""


def fill_installer(template: str, *, url: str, sha256: str) -> str:
    """Raises UnavailableError for an address in which a shell would find something to do: people pipe this into one as root."""
    if not _PLAIN_URL.fullmatch(url):
        raise UnavailableError("PUBLIC_URL holds characters that no plain address has; set it to one.")
    return template.replace(URL_MARK, url).replace(SHA256_MARK, sha256)


def _installer_template() -> str:
    return (Path(settings.BASE_DIR) / "agent" / "install.sh").read_text()


async def _build() -> AgentFile:
    with tempfile.TemporaryDirectory(prefix="rackrent-agent-") as directory:
        target = Path(directory) / "rackrent-agent.pyz"
        await _run_build(target)
        data = await asyncio.to_thread(target.read_bytes)
    return AgentFile(data, hashlib.sha256(data).hexdigest(), shipped_version())


async def _run_build(target: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "agent.build", str(target)),
        cwd=settings.BASE_DIR,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(BUILD_SECONDS):
            _, said = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise UnavailableError(f"The agent could not be built: {said.decode(errors='replace')[-300:]}")
