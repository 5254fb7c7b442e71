"""How full the file systems are."""

from __future__ import annotations

import os

from agent.host import files

_MOST_FILESYSTEMS = 32
# On a disk of this machine: asking one of these can't wait for another machine
LOCAL = frozenset(
    {
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "f2fs",
        "bcachefs",
        "overlay",
        "reiserfs",
        "jfs",
        "vfat",
        "exfat",
        "ntfs3",
    }
)
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "9p", "virtiofs", "beegfs"})


def mounts(root: str, kinds: frozenset[str]) -> list[str]:
    """Mount points of those kinds, in the order they were mounted; FUSE counts as network."""
    found = []
    for line in files.read_text(root + "proc/self/mounts").splitlines():
        words = line.split()
        if len(words) > 2 and (words[2] in kinds or (kinds is NETWORK and words[2].startswith("fuse."))):
            found.append(words[1].replace("\\040", " ").replace("\\011", "\t"))
    return found


def usage(root: str, mount: str) -> tuple[int, int, int] | None:
    """(device number, used bytes, total bytes); None when it cannot be asked or has no size."""
    path = root + mount.lstrip("/")
    try:
        device, figures = os.stat(path).st_dev, os.statvfs(path)
    except OSError:
        return None
    total = figures.f_blocks * figures.f_frsize
    return (device, total - figures.f_bfree * figures.f_frsize, total) if total > 0 else None


def rows(root: str, kinds: frozenset[str]) -> list[dict[str, object]]:
    """One row for each file system, however many times it is mounted (bind mounts, overlays over one disk)."""
    seen: set[int] = set()
    found: list[dict[str, object]] = []
    for mount in mounts(root, kinds):
        figures = usage(root, mount)
        if figures is not None and figures[0] not in seen and len(found) < _MOST_FILESYSTEMS:
            seen.add(figures[0])
            found.append({"mount": mount, "used_bytes": figures[1], "total_bytes": figures[2]})
    return found


def root_usage(root: str) -> dict[str, int]:
    figures = usage(root, "/")
    return {"filesystem_used_bytes": figures[1], "filesystem_total_bytes": figures[2]} if figures else {}
