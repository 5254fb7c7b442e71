"""Replays a recorded trace of GPUs through this dashboard's own ingest."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import floor, isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from fleet.sandbox.client import IngestClient
from fleet.sandbox.office import ask_database
from fleet.sandbox.replay import Enrolled, EnrolmentToken, Replay, nothing_more
from fleet.sandbox.replay_memory import Outside, ReplayError, ReplayMemory, memory_path, outside_window
from fleet.sandbox.server import http_client
from fleet.teams.audit import Actor
from fleet.teams.models import Team
from fleet.telemetry.agents import INTERVAL_CHOICES_SECONDS, change_interval
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.models import Agent
from fleet.traces import Trace, TraceError, read_trace

SHOWN_BAD_ROWS = 20
PROGRESS_SECONDS = 2.0
REPLAY = Actor.system("replay_trace")


class Command(BaseCommand):
    help = (
        "Send a trace (CSV or CSV.gz: pod,t_s,gpu_util_percent,memory_used_bytes; one GPU a pod) through the ingest, one agent a pod. "
        "Interrupted and run again, it goes on where it was."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--speed",
            type=positive,
            help="Trace seconds a second (1 = as recorded). Default: as fast as the server takes it.",
        )
        parser.add_argument(
            "--start",
            type=moment,
            help="When the trace begins, ISO 8601 (UTC where no zone is given). Default: so that it ends now.",
        )
        parser.add_argument("--url", type=address, default=settings.WEB_URL, help="The dashboard. Default: %(default)s")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--token", help="An enrolment token (rre_…) of the team that gets the machines.")
        where.add_argument("--team", help="The team's address (slug); a token is made for it.")
        parser.add_argument(
            "--skip-bad", action="store_true", help="Leave out rows that cannot be read, instead of stopping."
        )
        parser.add_argument(
            "--skip-old", action="store_true", help="Leave out readings older than 48 h, instead of stopping."
        )
        parser.add_argument(
            "--again", action="store_true", help="Forget how far earlier runs came, and where they began."
        )
        parser.add_argument(
            "--state-dir", type=Path, help="Where progress is kept. Default: with the installation's data."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            trace = read_trace(options["file"])
            self._check_rows(trace, skip=options["skip_bad"])
            destination = destination_of(options, trace)
            directory = options["state_dir"] or settings.INSTALLATION.home / "replay"
            memory = ReplayMemory(memory_path(directory, trace, options["url"], destination.name))
            memory.open()
            try:
                self._replay(trace, memory, destination, options)
            finally:
                memory.close()
        except (TraceError, ReplayError) as error:
            raise CommandError(str(error)) from error

    def _check_rows(self, trace: Trace, *, skip: bool) -> None:
        if not trace.samples and not trace.bad:
            raise TraceError("The trace has no rows.")
        if not trace.bad:
            return
        shown = [f"  {row}" for row in trace.bad[:SHOWN_BAD_ROWS]]
        more = [f"  … and {len(trace.bad) - SHOWN_BAD_ROWS:,} more"] if len(trace.bad) > SHOWN_BAD_ROWS else []
        listed = "\n".join([f"{len(trace.bad):,} rows cannot be read:", *shown, *more])
        if not skip:
            raise TraceError(
                f"{listed}\nNothing was sent. Correct them, or add --skip-bad to replay the other {trace.samples:,}."
            )
        self.stderr.write(listed)

    def _replay(self, trace: Trace, memory: ReplayMemory, destination: Destination, options: dict[str, Any]) -> None:
        if options["again"]:
            memory.start = None
            memory.rewind()
        now = time.time()
        memory.begin_at(start_of(trace, memory, options["start"], now))
        assert memory.start is not None
        if (outside := outside_window(trace, memory, memory.start, now)) and not options["skip_old"]:
            raise ReplayError(too_old_text(outside))
        self.stdout.write(introduction(trace, memory.start, options["url"]))
        asyncio.run(self._run(trace, memory, destination, options))

    async def _run(self, trace: Trace, memory: ReplayMemory, destination: Destination, options: dict[str, Any]) -> None:
        async with http_client() as http:
            replay = Replay(
                trace,
                memory,
                IngestClient(options["url"], http),
                enrolment_token=destination.token,
                enrolled=destination.enrolled,
                speed=options["speed"],
                skip_old=options["skip_old"],
            )
            if replay.done:
                self.stdout.write(f"{replay.done:,} of {trace.samples:,} samples were sent by an earlier run.")
            showing = asyncio.create_task(self._show(replay))
            try:
                await replay.run()
            finally:
                showing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await showing
        self._conclude(replay)

    async def _show(self, replay: Replay) -> None:
        """A line that is rewritten on a terminal, and written anew where nobody sees it move."""
        terminal = sys.stdout.isatty()
        began_at, began_with = time.monotonic(), replay.done
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            rate = (replay.done - began_with) / (time.monotonic() - began_at)
            text = f"{replay.done:,} of {replay.trace.samples:,} samples, {replay.pods_done} of {len(replay.trace.pods)} pods, {rate:,.0f}/s"
            if replay.progress.waiting_for:
                text += f", waiting: {replay.progress.waiting_for[:120]}"
            self.stdout.write(f"\r\x1b[K{text}" if terminal else text, ending="" if terminal else "\n")
            self.stdout.flush()

    def _conclude(self, replay: Replay) -> None:
        progress = replay.progress
        stored = replay.done - progress.skipped
        self.stdout.write(f"\r{stored:,} of {replay.trace.samples:,} samples are sent and acknowledged.")
        if progress.skipped:
            self.stdout.write(f"{progress.skipped:,} were older than 48 h and left out.")
        if progress.values_dropped:
            self.stdout.write(f"Values that the server dropped: {progress.values_dropped}")
        if progress.lost:
            raise ReplayError("The server did not keep everything:\n  " + "\n  ".join(progress.lost[:SHOWN_BAD_ROWS]))


@dataclass(frozen=True)
class Destination:
    """Where the machines go: `name` tells places apart, `token` lets agents in, `enrolled` is told which machine each became."""

    name: str
    token: EnrolmentToken
    enrolled: Enrolled


def destination_of(options: dict[str, Any], trace: Trace) -> Destination:
    if token := options["token"]:
        if not token.startswith("rre_"):
            raise CommandError(
                "--token must be an enrolment token: it begins with rre_. Make one under Settings, Agents."
            )
        return Destination(str(token), give(str(token)), nothing_more)
    team = team_of(options["team"])
    return Destination(
        f"team {team.pk} {team.slug}", made_once(team, len(trace.pods)), slow_down(team, trace.step_seconds)
    )


def give(token: str) -> EnrolmentToken:
    async def given() -> str:
        return token

    return given


def made_once(team: Team, machines: int) -> EnrolmentToken:
    """A token that is made when the first agent enrols."""
    made: list[str] = []
    making = asyncio.Lock()

    async def on_demand() -> str:
        async with making:
            if not made:
                made.append(await ask_database(lambda: make_token(team, machines)))
        return made[0]

    return on_demand


def make_token(team: Team, machines: int) -> str:
    _, token = create_enrolment_token(actor=REPLAY, team=team, max_uses=max(1, machines), lifetime=timedelta(days=2))
    return token.secret


def slow_down(team: Team, step_seconds: float) -> Enrolled:
    """Registers the trace's own pace as the agents' interval: charts are drawn no finer, so that a slow trace shows no false gaps."""
    interval = next(
        (choice for choice in INTERVAL_CHOICES_SECONDS if choice >= step_seconds), INTERVAL_CHOICES_SECONDS[-1]
    )

    def change(instance_id: int) -> None:
        agent = Agent.objects.select_related("instance__team").filter(instance=instance_id, instance__team=team).first()
        # None where --url is another dashboard than the one whose database this is.
        if agent is not None:
            change_interval(actor=REPLAY, agent=agent, interval_seconds=interval)

    async def enrolled(instance_id: int) -> None:
        await ask_database(lambda: change(instance_id))

    return enrolled


def team_of(slug: str | None) -> Team:
    teams = Team.objects.filter(slug=slug) if slug else Team.objects.filter(is_sandbox=False)
    found = list(teams.order_by("slug")[:50])
    if len(found) == 1:
        return found[0]
    known = ", ".join(Team.objects.order_by("slug").values_list("slug", flat=True)[:50])
    if slug:
        raise CommandError(f"There is no team {slug}. Teams: {known or 'none yet'}.")
    raise CommandError(f"Say which team gets the machines: --team SLUG or --token rre_…. Teams: {known or 'none yet'}.")


def start_of(trace: Trace, memory: ReplayMemory, given: datetime | None, now: float) -> float:
    """What was asked for, what an earlier run began with, or so that the last sample is now."""
    if given is not None:
        return given.timestamp()
    return memory.start if memory.start is not None else floor(now - trace.last)


def introduction(trace: Trace, start: float, url: str) -> str:
    return (
        f"{trace.samples:,} samples of {len(trace.pods)} pods, from {iso(start)} to {iso(start + trace.last)}, to {url}"
    )


def too_old_text(outside: Outside) -> str:
    return (
        f"{outside.readings:,} readings of {outside.pods} pods, from {iso(outside.oldest)} to {iso(outside.newest)}, are older than 48 h, "
        "and the server takes nothing older. Nothing was sent. "
        f"Give --start {iso(outside.earliest_start + 600)} or later, or --again to let the trace end now, "
        "or --skip-old to leave these readings out."
    )


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def positive(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not (isfinite(value) and value > 0):
        raise ArgumentTypeError(f"{word!r} is not a number above 0")
    return value


def moment(word: str) -> datetime:
    try:
        value = datetime.fromisoformat(word)
    except ValueError:
        raise ArgumentTypeError(f"{word!r} is not a time such as 2026-11-30T06:00:00+00:00") from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def address(word: str) -> str:
    parts = urlsplit(word)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ArgumentTypeError(f"{word!r} is not an address such as http://127.0.0.1:8400")
    return word.rstrip("/")
