"""On what kind of file system a store is: a write-ahead log needs memory that every opener shares.

Folders of another machine, and folders that a virtual machine or a container takes from its host, do not give that:
there the engine either refuses the log or damages the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["shared_file_system"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_SHARED: Final = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs"),
        *("nfs4", "ocfs2", "orangefs", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"),
    )
)
_LOCAL_FUSE: Final = frozenset(("fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.ntfs-3g"))
"""Served by a program on this machine from its own disks. Every other program may fetch from anywhere."""


def shared_file_system(path: Path, *, mounts: str | None = None) -> str | None:
    """Return the type of the file system of `path` where it is one that machines share (`nfs4`), else None.

    path: need not exist. mounts: the text of a Linux `mountinfo`; by default that of this process. Where a system has
    none, nothing is known and None is returned.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    place = path.resolve()
    found, kind = Path("/"), ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        members, described = before.split(" "), after.split(" ")
        if len(members) < 5 or not described[0]:
            continue
        point = Path(_plain(members[4]))
        # A later line hides an earlier one of the same place.
        if place.is_relative_to(point) and len(point.parts) >= len(found.parts):
            found, kind = point, described[0]
    return kind if kind in _SHARED or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE) else None


def _plain(written: str) -> str:
    r"""Return a path as it is called: the kernel writes a space as `\040`."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), written)
