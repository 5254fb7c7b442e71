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


def sizes(root: str, kinds: frozenset[str]) -> dict[str, tuple[int, int, int]]:
    """(size, free, available to users) in bytes by mount point.

    One entry for each file system, however many times it is mounted: bind mounts and overlays show one disk many times.
    """
    seen: set[int] = set()
    found: dict[str, tuple[int, int, int]] = {}
    for mount in mounts(root, kinds):
        asked = _asked(root, mount)
        if asked is not None and asked[0] not in seen and len(found) < _MOST_FILESYSTEMS:
            seen.add(asked[0])
            found[mount] = asked[1]
    return found


def rows(root: str, kinds: frozenset[str]) -> list[dict[str, object]]:
    """Protocol rows."""
    found = sizes(root, kinds).items()
    return [{"mount": mount, "used_bytes": size - free, "total_bytes": size} for mount, (size, free, _) in found]


def root_usage(root: str) -> dict[str, int]:
    asked = _asked(root, "/")
    if asked is None:
        return {}
    size, free, _ = asked[1]
    return {"filesystem_used_bytes": size - free, "filesystem_total_bytes": size}


def _asked(root: str, mount: str) -> tuple[int, tuple[int, int, int]] | None:
    """(device number, figures); None when it cannot be asked or has no size."""
    path = root + mount.lstrip("/")
    try:
        device, figures = os.stat(path).st_dev, os.statvfs(path)
    except OSError:
        return None
    unit = figures.f_frsize
    if figures.f_blocks <= 0:
        return None
    return device, (figures.f_blocks * unit, figures.f_bfree * unit, figures.f_bavail * unit)
