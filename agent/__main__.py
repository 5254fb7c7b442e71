"""``python -m agent``, and the first thing the zipapp runs."""

from __future__ import annotations

import sys

# The commands that are not for people are told apart before argparse is loaded: these processes stay small
NVML_CHILD, ACCEPT_CHILD, SUPERVISE = "nvml-child", "accept-child", "supervise"


def main(arguments: list[str]) -> int:
    if arguments[:1] == [NVML_CHILD]:
        return _serve_nvml(arguments[1:])
    if arguments[:1] == [ACCEPT_CHILD]:
        from agent.acceptance.child import main as accept

        return accept(arguments[1:])
    if arguments[:1] == [SUPERVISE]:
        from agent.supervise import main as supervise

        return supervise(arguments[1:])
    from agent.cli import main as command

    return command(arguments)


def _serve_nvml(arguments: list[str]) -> int:
    try:
        from agent.nvml.child import main as serve
    except ModuleNotFoundError as error:
        # In a checkout without its dependencies: the host is measured all the same
        detail = f"the Python package nvidia-ml-py is not installed ({error.name} is missing)"
        sys.stdout.write('{"failed":"error","detail":"%s"}\n' % detail)
        return 0
    return serve(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
