"""What kind of container, if any, this process lives in, and whose process ids it sees."""

from __future__ import annotations

import os

from agent.host import files

# The inode number of the first PID namespace is fixed in the kernel (include/linux/proc_ns.h, PROC_PID_INIT_INO)
_HOST_PID_NAMESPACE = "pid:[4026531836]"
_CGROUP_MARKS = (("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc"))


def container_kind(root: str) -> str:
    """``none``, ``docker``, ``podman``, ``kubernetes``, ``lxc`` or ``unknown``."""
    environment = process_environment(root, 1)
    if "KUBERNETES_SERVICE_HOST" in {*environment, *os.environ} or os.path.exists(
        root + "var/run/secrets/kubernetes.io"
    ):
        return "kubernetes"
    if os.path.exists(root + ".dockerenv"):
        return "docker"
    if os.path.exists(root + "run/.containerenv"):
        return "podman"
    return _from_manager(root, environment) or _from_cgroup(root) or _from_root_mount(root)


def _from_manager(root: str, environment: dict[str, str]) -> str | None:
    """Service managers (systemd, lxc) tell their first process what it runs in."""
    named = (files.read_text_or_none(root + "run/systemd/container") or environment.get("container", "")).strip()
    if not named:
        return None
    return named if named in ("docker", "podman", "lxc") else "unknown"


def _from_cgroup(root: str) -> str | None:
    text = files.read_text_or_none(root + "proc/1/cgroup") or ""
    return next((kind for mark, kind in _CGROUP_MARKS if mark in text), None)


def _from_root_mount(root: str) -> str:
    """An overlay as root is a container's; which kind, nobody says."""
    for line in (files.read_text_or_none(root + "proc/self/mounts") or "").splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "/":
            return "unknown" if words[2] in ("overlay", "aufs", "fuse-overlayfs") else "none"
    return "none"


def process_environment(root: str, pid: int) -> dict[str, str]:
    """The variables a process was started with; empty where we may not look."""
    text = files.read_text_or_none(f"{root}proc/{pid}/environ") or ""
    pairs = (entry.partition("=") for entry in text.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


def sees_host_processes(root: str) -> bool:
    """Whether the process ids that NVML reports (always the host's) mean the same processes here."""
    try:
        return os.readlink(root + "proc/self/ns/pid") == _HOST_PID_NAMESPACE
    except OSError:
        return False
