"""A store in a folder that machines share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog

from aip_hermes.cli.doctor.storage import mount
from aip_hermes.database import shared_file_system
from aip_hermes.database.database import Database
from tests.support.store_copies import APPLICATION_ID, MIGRATIONS, add, contents, names_in, store

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:41 / /home rw,relatime shared:7 - nfs4 files:/home rw,vers=4.2
41 40 0:42 / /home/me/disk rw,relatime - xfs /dev/sdb rw
42 27 0:43 / /mnt/my\040share rw - cifs //files/share rw
43 27 0:44 / /projects rw,nosuid - 9p host rw,trans=virtio
44 27 0:45 / /host rw - virtiofs host rw
45 27 0:46 / /cloud rw - fuse.sshfs me@there: rw
46 27 0:47 / /layers rw - fuse.fuse-overlayfs fuse-overlayfs rw
47 27 0:48 / /twice rw - nfs old:/ rw
48 27 0:49 / /twice rw - btrfs /dev/sdc rw
torn line
"""


@pytest.mark.requirement("database:mount:known")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/aip/aip.sqlite3", None),
        ("/home/me/aip.sqlite3", "nfs4"),
        ("/home/me/disk/aip.sqlite3", None),
        ("/homely/aip.sqlite3", None),
        ("/mnt/my share/aip.sqlite3", "cifs"),
        ("/projects/data/aip.sqlite3", "9p"),
        ("/host/aip.sqlite3", "virtiofs"),
        ("/cloud/aip.sqlite3", "fuse.sshfs"),
        ("/layers/aip.sqlite3", None),
        ("/twice/aip.sqlite3", None),
    ],
)
def test_the_deepest_mount_says_whether_machines_share_a_folder(path: str, kind: str | None) -> None:
    assert shared_file_system(Path(path), mounts=MOUNTS) == kind
    assert shared_file_system(Path(path), mounts="") is None


@pytest.mark.requirement("doctor:mount")
def test_the_doctor_says_so_with_a_remedy() -> None:
    found = mount(Path("/projects/data/aip.sqlite3"), mounts=MOUNTS)
    assert (found.check, found.level) == ("mount", "warn")
    assert "9p" in found.detail
    assert "[store]" in found.remedy
    assert mount(Path("/var/lib/aip/aip.sqlite3"), mounts=MOUNTS).level == "ok"


@pytest.mark.requirement("database:mount:no-shared-memory")
@pytest.mark.parametrize("was_there", [False, True])
async def test_on_a_shared_folder_a_store_works_without_a_log_and_says_so_once(tmp_path: Path, was_there: bool) -> None:
    path = tmp_path / "s.db"
    if was_there:
        async with store(path) as db:
            await db.write(add("before"))
    shared = f"27 1 0:5 / {tmp_path} rw - virtiofs host rw"

    def told(place: Path) -> str | None:
        return shared_file_system(place, mounts=shared)

    with structlog.testing.capture_logs() as logs:
        async with Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID, shared=told) as db:
            await asyncio.gather(*(db.write(add(str(number))) for number in range(5)))
            assert await db.read(lambda connection: connection.execute("PRAGMA journal_mode")) == [
                {"journal_mode": "delete"}
            ]
            assert contents(tmp_path).keys() == {"s.db"}
    assert [(entry["event"], entry["file_system"]) for entry in logs] == [("database.no_write_ahead_log", "virtiofs")]
    assert names_in(path) == [*(["before"] if was_there else []), *map(str, range(5))]
