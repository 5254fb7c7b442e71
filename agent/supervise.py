"""The supervisor as a process: what `run` turns into, without what only the command line needed."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys

from agent import program
from agent.host.provider_ids import provider_ids
from agent.self_update import Updater
from agent.settings import Settings, SettingsError, ensure_state_directory, load_settings
from agent.supervisor import Supervisor
from agent.transport import AddressError, Dashboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Connect = Callable[[], Dashboard]

# sysexits.h, EX_CONFIG: the service unit does not start such an agent again
EXIT_CONFIGURATION = 78
EXIT_FAILED = 1

log = logging.getLogger("rackrent")


class Options:
    """Words on a command line, so that they outlive an exec."""

    __slots__ = ("archive", "self_update", "settings_file", "state_directory")

    def __init__(self, settings_file: str, state_directory: str, *, self_update: bool, archive: str) -> None:
        self.settings_file = settings_file
        self.state_directory = state_directory
        self.self_update = self_update
        self.archive = archive

    def words(self) -> list[str]:
        return [self.settings_file, self.state_directory, "self-update" if self.self_update else "", self.archive]

    @staticmethod
    def parsed(words: list[str]) -> Options:
        settings_file, state_directory, update, archive = words
        return Options(settings_file, state_directory, self_update=bool(update), archive=archive)


def main(words: list[str]) -> int:
    """Until a signal ends it."""
    options = Options.parsed(words)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    try:
        settings = load_settings(options.settings_file)
        refuse_copied_settings(settings, provider_ids())
        connect = dashboard_of(settings)
        supervisor = Supervisor(
            settings, connect(), ensure_state_directory(options.state_directory), options.settings_file
        )
    except (SettingsError, AddressError, OSError) as error:
        sys.stderr.write(f"rackrent-agent: {error}\n")
        return EXIT_CONFIGURATION
    if options.self_update and options.archive:
        supervisor.updater = Updater(options.archive, connect, supervisor.stop_for_update)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: supervisor.stop())
    # What is alive now stays: leave it out of every later collection
    gc.collect()
    gc.freeze()
    supervisor.run()
    if supervisor.updated:
        _start_again(options)
    return EXIT_FAILED if supervisor.failed else 0


def dashboard_of(settings: Settings) -> Connect:
    return lambda: Dashboard(settings.url, settings.token, ca_file=settings.ca_file, allow_http=settings.allow_http)


def refuse_copied_settings(settings: Settings, ids: dict[str, str]) -> None:
    """Raises SettingsError on a machine made from an image of an enrolled one: two machines must not write as one."""
    for name, enrolled_as in settings.provider_ids.items():
        if ids.get(name, enrolled_as) != enrolled_as:
            raise SettingsError(
                f"these settings belong to {name} {enrolled_as}, this machine is {ids[name]}: its disk was copied. Enrol it anew"
            )


def _start_again(options: Options) -> None:
    """The new archive unpacks itself as the old one did."""
    words = ["run", "--config", options.settings_file, "--state-dir", options.state_directory, "--self-update"]
    command = program.command(*words, where=options.archive)
    os.execve(command[0], command, program.child_environment())  # noqa: S606  # no shell; the words are our own
