"""What is sent to a machine for a job: the command as a script, the launcher's files, and the environment of its rank.

What people typed stands in files of its own and is quoted where it meets a shell; nothing of it is part of a command of ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fleet.inventory.ssh import is_host
from jobs.book.models import Attempt, Job, Node
from jobs.plans.commands import filled
from jobs.runner.machine import SentFile, environment_file

RENDEZVOUS_PORT = 29_500


def bundle(
    *,
    attempt: Attempt,
    node: Node,
    nodes: Sequence[Node],
    hosts: Sequence[str],
    interface: str,
    secrets: Mapping[str, str],
    tells: Mapping[str, str],
) -> list[SentFile]:
    """`hosts`: under which the nodes reach each other, in the order of ranks; `interface`: this one's, "" = not known. `tells`: how the job itself says how far it is."""
    job = attempt.job
    made = [
        SentFile("command.sh", command_script(job, attempt).encode()),
        SentFile(
            "environment",
            environment_file(
                {
                    **of_interface(interface),
                    **job.environment,
                    **of_rank(attempt, node, nodes, hosts),
                    **tells,
                    **secrets,
                }
            ),
        ),
        SentFile("work/hosts", "".join(f"{host} slots={job.processes_per_node or 1}\n" for host in hosts).encode()),
    ]
    port = str(rendezvous_port(attempt))
    made += [
        SentFile(f"work/{file['path']}", _text_of(file, hosts, port).encode(), bool(file.get("executable")))
        for file in job.files
    ]
    return made


def _text_of(file: Mapping[str, Any], hosts: Sequence[str], port: str) -> str:
    """A launcher's file names hosts that were not known when it was written. What is no host does not get into it."""
    text = str(file["text"])
    known = [host if is_host(host) else "unknown-host" for host in hosts]
    return filled(text, known, port) if file.get("filled") else text


def rendezvous_port(attempt: Attempt) -> int:
    """Two jobs on one machine must not meet."""
    return RENDEZVOUS_PORT + attempt.pk % 500


def of_interface(name: str) -> dict[str, str]:
    """Over which ranks talk: left to themselves, NCCL and gloo may choose a bridge of containers. What the job says itself goes before."""
    return {"NCCL_SOCKET_IFNAME": name, "GLOO_SOCKET_IFNAME": name, "TP_SOCKET_IFNAME": name} if name else {}


def of_rank(attempt: Attempt, node: Node, nodes: Sequence[Node], hosts: Sequence[str]) -> dict[str, str]:
    """What a launcher needs to find the others, by our names and by those of torchrun. Set for one machine too."""
    job = attempt.job
    values = {
        "RACKRENT_ATTEMPT": str(attempt.number),
        "RACKRENT_NODE_RANK": str(node.rank),
        "RACKRENT_NODES": str(len(nodes)),
        "RACKRENT_HOSTS": ",".join(hosts),
        "NODE_RANK": str(node.rank),
        "NNODES": str(len(nodes)),
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": str(rendezvous_port(attempt)),
        "PYTHONUNBUFFERED": "1",
    }
    if job.processes_per_node:
        values["NPROC_PER_NODE"] = str(job.processes_per_node)
    paths = {"RACKRENT_DATA": job.data_path, "RACKRENT_CHECKPOINTS": job.checkpoint_path}
    return values | {name: path for name, path in paths.items() if path}


def command_script(job: Job, attempt: Attempt) -> str:
    """Fetches what it needs, then becomes the command. A step that fails ends it with its own code."""
    steps = ["set -e"]
    if job.installs:
        steps.append('[ ! -s ../venv ] || . "$(cat ../venv)/bin/activate"')
    if job.repository:
        revision = job.revision or "HEAD"
        steps += [
            f"[ -d repository ] || git clone --quiet {shlex.quote(job.repository)} repository",
            "cd repository",
            f"git fetch --quiet origin {shlex.quote(revision)}",
            "git checkout --quiet FETCH_HEAD",
        ]
    if job.checkpoint_path:
        steps.append(f"mkdir -p {shlex.quote(job.checkpoint_path)}")
    steps.append("set +e")
    more = f" {job.resume_arguments}" if job.resume_arguments and attempt.number > 1 else ""
    return "\n".join([*steps, job.command.replace("\r\n", "\n").rstrip() + more, ""])
