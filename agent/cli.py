"""The commands: enrol, run, pause, resume, metrics, and one sample with --once."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from agent import __version__
from agent.settings import (
    SettingsError,
    default_settings_file,
    default_state_directory,
    ensure_state_directory,
    load_settings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_REFUSED, EXIT_USAGE = 1, 2


def main(arguments: list[str]) -> int:
    """Run one command; the process's exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if options.once:
        return _once()
    if options.command is None:
        _parser().print_help(sys.stderr)
        return EXIT_USAGE
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except (SettingsError, OSError, ValueError) as error:
        return _refuse(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rackrent-agent", description="Measures this machine's GPUs for a Rackrent dashboard."
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--once", action="store_true", help="print one sample as JSON and end")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands")
    files = argparse.ArgumentParser(add_help=False)
    files.add_argument(
        "--config", default=default_settings_file(), metavar="FILE", help="settings file (default: %(default)s)"
    )
    files.add_argument(
        "--state-dir", default=default_state_directory(), metavar="DIR", help="queue and status (default: %(default)s)"
    )
    _add_enrol(commands, files)
    run = commands.add_parser("run", parents=[files], help="measure and send, in the foreground")
    run.add_argument("--self-update", action="store_true", help="install newer versions that the dashboard serves")
    run.set_defaults(command=_run)
    _add_metrics(commands)
    pause = commands.add_parser("pause", parents=[files], help="let go of NVML, for a GPU reset or a MIG change")
    pause.set_defaults(command=_pause)
    resume = commands.add_parser("resume", parents=[files], help="measure again")
    resume.set_defaults(command=_resume)
    return parser


def _add_enrol(commands: argparse._SubParsersAction[argparse.ArgumentParser], files: argparse.ArgumentParser) -> None:
    enrol = commands.add_parser("enrol", parents=[files], help="make this machine known to a dashboard")
    enrol.add_argument("--url", required=True, help="the dashboard's address")
    enrol.add_argument(
        "--token", help="enrolment token rre_… (or in the variable RACKRENT_ENROL_TOKEN, which other users cannot see)"
    )
    enrol.add_argument("--ca-file", metavar="FILE", help="trust this certificate authority, and no other")
    enrol.add_argument("--allow-http", action="store_true", help="send tokens unencrypted, on a network you trust")
    enrol.add_argument(
        "--serving",
        action="append",
        metavar="URL",
        help="read this serving engine's metrics, http://127.0.0.1:PORT/metrics; may be given again (default: engines whose processes run here)",
    )
    enrol.add_argument("--no-serving", action="store_true", help="read no serving engines")
    enrol.set_defaults(command=_enrol)


def _add_metrics(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    metrics = commands.add_parser("metrics", help="serve a page for Prometheus")
    metrics.add_argument("--listen", metavar="HOST:PORT", help="default: 127.0.0.1:9469")
    metrics.add_argument(
        "--token-file", metavar="FILE", help="a bearer token that scrapers send; needed beyond loopback"
    )
    metrics.add_argument(
        "--host-label", choices=("Hostname", "hostname"), default="Hostname", help="as dcgm-exporter 3 or 4 spells it"
    )
    metrics.set_defaults(command=_metrics)


def _once() -> int:
    import json

    from agent.one_sample import take_sample

    sys.stdout.write(json.dumps(take_sample(), indent=2, sort_keys=True) + "\n")
    return 0


def _enrol(options: argparse.Namespace) -> int:
    from agent.enrolment import EnrolmentError, enrol
    from agent.one_sample import GpuQuestion
    from agent.settings import save_settings
    from agent.transport import TransportError

    token = options.token or os.environ.get("RACKRENT_ENROL_TOKEN", "")
    if not token:
        return _refuse("give --token rre_… or set RACKRENT_ENROL_TOKEN")
    gpus = GpuQuestion()
    try:
        if gpus.start():
            gpus.sample()
        settings = enrol(
            url=options.url,
            token=token,
            settings_file=options.config,
            gpus=gpus.inventory,
            ca_file=options.ca_file,
            allow_http=options.allow_http,
            serving=[] if options.no_serving else options.serving,
        )
    except (EnrolmentError, TransportError) as error:
        return _refuse(str(error))
    finally:
        gpus.stop()
    save_settings(options.config, settings)
    sys.stderr.write(f"enrolled as instance {settings.instance_id}; settings are in {options.config}\n")
    return 0


def _run(options: argparse.Namespace) -> int:
    from agent.__main__ import SUPERVISE
    from agent.program import entry
    from agent.supervise import Options
    from agent.unpacking import replace_process

    settings = load_settings(options.config)
    state_directory = ensure_state_directory(os.path.abspath(options.state_dir))
    archive = entry() if os.path.isfile(entry()) else ""
    update = settings.self_update or options.self_update
    kept = Options(os.path.abspath(options.config), state_directory, self_update=update, archive=archive)
    replace_process([SUPERVISE, *kept.words()], state_directory)
    return EXIT_REFUSED


def _metrics(options: argparse.Namespace) -> int:
    import contextlib

    from agent.metrics_server import DEFAULT_LISTEN, serve

    token = ""
    if options.token_file:
        with open(options.token_file, encoding="utf-8") as file:
            token = file.read().strip()
        if not token:
            return _refuse(f"{options.token_file} is empty: write a token into it")
    server = serve(options.listen or DEFAULT_LISTEN, token, options.host_label)
    sys.stderr.write("serving http://{}:{}/metrics\n".format(*server.server_address[:2]))
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()
    return 0


def _pause(options: argparse.Namespace) -> int:
    from agent.control import Control

    if not os.path.isdir(options.state_dir):
        return _refuse(f"{options.state_dir} does not exist: give the --state-dir that the agent runs with")
    control = Control(options.state_dir)
    control.pause()
    return _wait_for(control, "paused", "NVML is released; `resume` takes it up again")


def _resume(options: argparse.Namespace) -> int:
    from agent.control import Control

    Control(options.state_dir).resume()
    sys.stderr.write("measuring goes on within one interval\n")
    return 0


def _wait_for(control: object, state: str, told: str, seconds: float = 20.0) -> int:
    """Until the running agent says so: whoever resets a GPU next must not find NVML still open."""
    import time

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        status = control.status()  # type: ignore[attr-defined]  # Control, imported only where a command needs it
        if status.get("nvml") == state or not status:
            sys.stderr.write((told if status else "no agent is running; it will start paused") + "\n")
            return 0
        time.sleep(0.2)
    return _refuse("the running agent did not let go of NVML in time: see its log")


def _refuse(message: str) -> int:
    sys.stderr.write(f"rackrent-agent: {message}\n")
    return EXIT_REFUSED
