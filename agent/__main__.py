"""``python -m agent``, and the first thing the zipapp runs."""

from __future__ import annotations

import sys

# The one command that is not for people is told apart before argparse is loaded: the NVML process stays small
_NVML_CHILD = "nvml-child"


def main(arguments: list[str]) -> int:
    if arguments[:1] == [_NVML_CHILD]:
        from agent.nvml.child import main as serve

        return serve(arguments[1:])
    from agent.cli import main as command

    return command(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
