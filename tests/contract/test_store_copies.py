"""Looking at a store, copying it while it is written, putting a copy in its place."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from aip_hermes.database import (
    AlreadyOwned,
    Connection,
    Copied,
    CopyRefused,
    OwnerLock,
    Restored,
    StoreFailure,
    StoreRefused,
    StoreUnavailable,
    back_up,
    open_untouched,
    restore,
)
from tests.support.store_copies import (
    APPLICATION_ID,
    MIGRATIONS,
    add,
    contents,
    filled,
    killed_store,
    long_names,
    names_in,
    run_python,
    store,
)


def copy(path: Path, target: Path, **options: object) -> Copied:
    return back_up(path, target, migrations=MIGRATIONS, application_id=APPLICATION_ID, **options)  # type: ignore[arg-type]


def put_back(path: Path, backup: Path) -> Restored:
    return restore(path, backup, migrations=MIGRATIONS, application_id=APPLICATION_ID, now_ms=7)


def looked_at(path: Path) -> list[str]:
    with open_untouched(path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as found:
        assert found.problems() == []
        return [row["name"] for row in Connection(found.raw).execute("SELECT name FROM items ORDER BY id")]


def damage(path: Path) -> None:
    """Overwrite a page in the middle that is no page of the head."""
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xff" * 4096)


@pytest.mark.requirement("store:look:changes-nothing")
@pytest.mark.parametrize("make", [filled, killed_store])
async def test_a_look_at_a_store_at_rest_sees_all_and_changes_nothing(
    tmp_path: Path, make: Callable[..., asyncio.Future[Path]]
) -> None:
    path = await make(tmp_path / "store.db", "a", "b")
    before = contents(tmp_path)
    assert looked_at(path) == ["a", "b"]
    assert contents(tmp_path) == before


@pytest.mark.requirement("store:look:changes-nothing", "backup:online")
async def test_a_served_store_is_read_beside_its_server_and_its_log_stays_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with OwnerLock(tmp_path):
        async with store(path) as db:
            await db.write(add("a"))
            log = path.with_name("store.db-wal").stat().st_ino
            for number in range(5):
                assert await asyncio.to_thread(looked_at, path) == ["a", *map(str, range(number))]
                await asyncio.to_thread(copy, path, tmp_path / f"copy{number}")
                await db.write(add(str(number)))
            assert path.with_name("store.db-wal").stat().st_ino == log
    assert names_in(tmp_path / "copy4") == ["a", "0", "1", "2", "3"]


@pytest.mark.requirement("store:look:changes-nothing")
async def test_a_log_without_its_index_is_said_and_left_alone(tmp_path: Path) -> None:
    path = await killed_store(tmp_path / "store.db", "a", "b")
    path.with_name("store.db-shm").unlink()
    before = contents(tmp_path)
    with pytest.raises(StoreUnavailable) as refused:
        looked_at(path)
    assert refused.value.kind == "io"
    assert contents(tmp_path) == before


@pytest.mark.requirement("backup:online")
async def test_a_backup_is_one_moment_although_the_server_writes_while_it_is_made(tmp_path: Path) -> None:
    path, target = tmp_path / "store.db", tmp_path / "copies" / "one.db"
    target.parent.mkdir()
    with OwnerLock(tmp_path):
        async with store(path) as db:
            await db.write(add(*long_names(1200, chars=4000)))
            loop, steps = asyncio.get_running_loop(), list[tuple[int, int]]()

            def write_between(done: int, total: int) -> None:
                steps.append((done, total))
                asyncio.run_coroutine_threadsafe(db.write(add(f"late{done}", f"later{done}")), loop).result(30)

            await asyncio.to_thread(copy, path, target, progress=write_between)
            assert len(steps) > 1
            assert [done for done, _ in steps] == sorted({done for done, _ in steps})
    assert len(names_in(target)) == 1200
    assert len(names_in(path)) == 1200 + 2 * len(steps)
    assert contents(target.parent).keys() == {"one.db"}


@pytest.mark.requirement("backup:private-and-whole")
async def test_a_backup_is_one_private_file_that_opens_like_the_store(tmp_path: Path) -> None:
    path = await killed_store(tmp_path / "store.db", "a", "b")
    before = contents(tmp_path)
    target = tmp_path / "copy.db"
    made = copy(path, target)
    assert (made.path, made.size, made.schema_version) == (target, target.stat().st_size, 1)
    assert target.stat().st_mode & 0o777 == 0o600
    assert contents(tmp_path) == {**before, "copy.db": target.read_bytes()}
    async with store(target) as db:
        assert await db.write(add("c")) == [3]
    assert names_in(target) == ["a", "b", "c"]


@pytest.mark.requirement("backup:never-overwrites")
async def test_a_target_that_exists_is_replaced_by_force_only_and_the_store_never(tmp_path: Path) -> None:
    path = await filled(tmp_path / "store.db", "a")
    target = tmp_path / "mine.txt"
    target.write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = path.read_bytes()
    for taken in (target, tmp_path / "link", tmp_path, path):
        with pytest.raises(CopyRefused):
            copy(path, taken)
    with pytest.raises(CopyRefused):
        copy(path, path, force=True)
    with pytest.raises(CopyRefused):
        copy(path, tmp_path / "no" / "folder.db", force=True)
    assert (target.read_text(encoding="utf-8"), path.read_bytes()) == ("mine", before)
    copy(path, target, force=True)
    assert names_in(target) == ["a"]


@pytest.mark.requirement("backup:never-overwrites")
@pytest.mark.parametrize("name", ["store.db-wal", "store.db-shm", "store.db-journal", "owner.lock", "pipe"])
@pytest.mark.parametrize("there", [True, False])
async def test_no_force_makes_a_copy_of_what_is_no_file_or_the_stores_own(
    tmp_path: Path, name: str, there: bool
) -> None:
    path = await filled(tmp_path / "store.db", "a")
    target = tmp_path / name
    if name == "pipe":
        os.mkfifo(target)
    elif there:
        target.touch()
    with pytest.raises(CopyRefused):
        copy(path, target, force=True)
    assert stat.S_ISFIFO(target.stat().st_mode) if name == "pipe" else target.exists() is there
    (tmp_path / "other").symlink_to(tmp_path)
    with pytest.raises(CopyRefused):
        copy(path, tmp_path / "other" / name, force=True)
    assert names_in(path) == ["a"]


@pytest.mark.requirement("backup:damaged-said")
async def test_a_damaged_store_gives_no_backup(tmp_path: Path) -> None:
    path = await filled(tmp_path / "store.db", *long_names(50, chars=3000))
    damage(path)
    with pytest.raises(StoreUnavailable) as refused:
        copy(path, tmp_path / "copy.db")
    assert refused.value.kind == "corrupt"
    assert contents(tmp_path).keys() == {"store.db"}


@pytest.mark.requirement("backup:private-and-whole")
async def test_a_full_disk_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = await filled(tmp_path / "store.db", *long_names(500, chars=4000))
    before = contents(tmp_path)
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from aip_hermes.database import back_up, StoreFailure\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "try: back_up(Path(sys.argv[1]), Path(sys.argv[2]), migrations=sys.argv[3], application_id=int(sys.argv[4]))\n"
        "except StoreFailure: sys.exit(7)\n"
    )
    arguments = [str(path), str(tmp_path / "copy.db"), MIGRATIONS, str(APPLICATION_ID)]
    done = run_python(program, *arguments)
    assert done.returncode == 7, done.stderr
    assert contents(tmp_path) == before


@pytest.mark.requirement("restore:keeps-the-old")
@pytest.mark.parametrize("make", [filled, killed_store])
async def test_a_restored_store_is_the_backup_and_the_old_one_is_beside_it(
    tmp_path: Path, make: Callable[..., asyncio.Future[Path]]
) -> None:
    path = await filled(tmp_path / "data" / "store.db", "a")
    backup = tmp_path / "backup.db"
    copy(path, backup)
    shutil.rmtree(path.parent)
    await make(path, "b", "c")
    done = put_back(path, backup)
    assert done.kept == path.with_name("store.db.before-restore-7")
    assert (names_in(path), names_in(done.kept)) == (["a"], ["b", "c"])
    assert path.stat().st_mode & 0o777 == 0o600
    async with store(path) as db:
        assert await db.write(add("d")) == [2]
    assert names_in(done.kept) == ["b", "c"]


@pytest.mark.requirement("restore:keeps-the-old")
async def test_a_damaged_store_is_replaced_and_kept_with_its_log(tmp_path: Path) -> None:
    path = await filled(tmp_path / "data" / "store.db", "a")
    backup = tmp_path / "backup.db"
    copy(path, backup)
    await killed_store(path, "b", "c")
    log = path.with_name("store.db-wal").read_bytes()
    with path.open("r+b") as file:  # the application id stays, the rest of the head goes
        file.write(b"SQLite format 3\0" + b"\xff" * 50)
    damaged = path.read_bytes()
    done = put_back(path, backup)
    assert done.kept is not None
    assert (done.kept.read_bytes(), done.kept.with_name(done.kept.name + "-wal").read_bytes()) == (damaged, log)
    assert names_in(path) == ["a"]


@pytest.mark.requirement("restore:needs-the-folder")
async def test_a_restore_waits_for_nobody_and_names_who_has_the_folder(tmp_path: Path) -> None:
    path = await filled(tmp_path / "data" / "store.db", "a")
    backup = tmp_path / "backup.db"
    copy(path, backup)
    with OwnerLock(path.parent):
        before = contents(path.parent)
        with pytest.raises(AlreadyOwned) as refused:
            put_back(path, backup)
        assert refused.value.pid == os.getpid()
        assert contents(path.parent) == before
    async with store(path) as db:  # a command that has it open without the folder
        await db.write(add("b"))
        with pytest.raises(StoreUnavailable) as busy:
            await asyncio.to_thread(put_back, path, backup)
        assert busy.value.kind == "locked"
        assert await db.write(add("c")) == [3]
    assert names_in(path) == ["a", "b", "c"]


def foreign(path: Path) -> None:
    sqlite3.connect(path).execute("PRAGMA application_id = 77").connection.execute(
        "CREATE TABLE t (x)"
    ).connection.close()


def newer(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("INSERT INTO schema_migrations VALUES (99, 'later', 'x', 1)")
    raw.commit()
    raw.close()


def logged(path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(b"log")


@pytest.mark.requirement("restore:refuses")
@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (foreign, StoreRefused),
        (newer, StoreRefused),
        (logged, CopyRefused),
        (damage, StoreUnavailable),
        (Path.unlink, StoreUnavailable),
        (lambda path: path.write_text("no store at all, but a longer text than a head" * 9), StoreRefused),
        (lambda path: path.write_bytes(b""), StoreRefused),
    ],
    ids=["foreign", "newer", "logged", "damaged", "missing", "text", "empty"],
)
async def test_what_is_no_good_backup_is_refused_and_nothing_changes(
    tmp_path: Path, spoil: Callable[[Path], object], error: type[StoreFailure]
) -> None:
    path = await filled(tmp_path / "data" / "store.db", "a")
    (tmp_path / "backups").mkdir()
    backup = tmp_path / "backups" / "backup.db"
    copy(await filled(tmp_path / "other.db", *long_names(50, chars=3000)), backup)
    if spoil is foreign:
        backup.unlink()
    spoil(backup)
    before = contents(path.parent), contents(backup.parent)
    with pytest.raises(error):
        put_back(path, backup)
    assert (contents(path.parent), contents(backup.parent)) == before


@pytest.mark.requirement("restore:refuses")
async def test_a_file_of_another_program_under_the_stores_name_is_not_replaced(tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    copy(await filled(tmp_path / "other.db", "a"), backup)
    path = tmp_path / "data" / "state.db"
    path.parent.mkdir()
    foreign(path)
    before = contents(path.parent)
    with pytest.raises(StoreRefused):
        put_back(path, backup)
    assert contents(path.parent) == before


_KILLS = """
import shutil, sys
from pathlib import Path
from aip_hermes.database import restore
from tests.support.store_copies import APPLICATION_ID, MIGRATIONS, names_in
from tests.support.store_kills import killed_before_change

origin, place, backup, wanted = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
for number in range(1, 200):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(origin, place)
    killed = killed_before_change(number, lambda: restore(
        place / "store.db", backup, migrations=MIGRATIONS, application_id=APPLICATION_ID, now_ms=7))
    kept = place / "store.db.before-restore-7"
    now = ",".join(names_in(place / "store.db"))
    olds = [now] if not kept.exists() else [now, ",".join(names_in(kept))]
    assert now in ("new", wanted), (number, now)
    assert wanted in olds, (number, olds)
    assert not (place / "store.db-wal").exists() or now == wanted, number
    if not killed:
        assert now == "new"
        print(number)
        sys.exit(0)
sys.exit(1)
"""


@pytest.mark.requirement("restore:survives-kill")
@pytest.mark.parametrize("make", [filled, killed_store])
async def test_a_restore_killed_before_any_of_its_changes_loses_nothing(
    tmp_path: Path, make: Callable[..., asyncio.Future[Path]]
) -> None:
    backup = tmp_path / "backup.db"
    copy(await filled(tmp_path / "other.db", "new"), backup)
    await make(tmp_path / "origin" / "store.db", "b", "c")
    arguments = [str(tmp_path / "origin"), str(tmp_path / "place"), str(backup), "b,c"]
    done = run_python(_KILLS, *arguments)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 6
