"""Files and modes: tokens, the approval authority, the data folder."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from aip_hermes.cli.doctor.finding import Finding, fail, fine, warn
from aip_hermes.ports import Clock
from aip_hermes.runtime import Authorities, AuthorityFileError
from aip_hermes.server import TokenTable
from aip_hermes.settings import Settings, SettingsError

__all__ = ["authorities", "data_folder", "settings_file", "tokens"]


def settings_file(settings: Settings) -> Finding:
    """Whether others can put settings of their own in place of these."""
    if (place := _open_folder(settings.path)) is not None:
        return _replaceable("settings", settings.path, place)
    return fine("settings", f"{settings.path}: {len(settings.endpoints)} endpoints, {len(settings.tokens)} tokens")


def tokens(settings: Settings, *, clock: Clock) -> Iterator[Finding]:
    """Whether every token file can be used as the server would use it, and when tokens end."""
    try:
        TokenTable.of(settings, clock=clock)
    except SettingsError as error:
        yield fail("tokens", str(error), "correct that file, then ask again")
        return
    for token in settings.tokens:
        if (place := _open_folder(token.file)) is not None:
            yield _replaceable("tokens", token.file, place)
            return
    now, soon = clock.now_ms(), 14 * 86_400_000
    late = [token for token in settings.tokens if token.expires_at_ms is not None and token.expires_at_ms <= now + soon]
    for token in late:
        word = "has expired" if (token.expires_at_ms or 0) <= now else "expires within two weeks"
        remedy = "write a new token into the file, move `expires_at`, and send the server SIGHUP"
        yield warn("tokens", f"{token.file} ({token.principal}) {word}", remedy)
    if not late:
        yield fine("tokens", f"{len(settings.tokens)} token files, each for its owner alone")


def authorities(settings: Settings, *, clock: Clock) -> tuple[Authorities, Finding]:
    """Return who may decide, and whether the file that says so can be trusted."""
    file = settings.authority_file
    if file is None:
        return Authorities(), fail(
            "authority",
            "the settings name no file of who may decide, so nobody can",
            f"write `authority_file` under [approvals] in {settings.path}; `aip-hermes init DIR` writes an example",
        )
    try:
        found = Authorities.load(file, clock=clock)
        mode = file.stat().st_mode
    except (AuthorityFileError, OSError) as error:
        return Authorities(), fail("authority", str(error), "correct that file; the server does not start without it")
    if mode & 0o022:
        return found, fail(
            "authority", f"{file} can be changed by others, who could name themselves", f"run `chmod go-w {file}`"
        )
    if (place := _open_folder(file)) is not None:
        return found, _replaceable("authority", file, place)
    return found, fine("authority", f"{file} names {len(found)} who may decide")


def _open_folder(file: Path) -> Path | None:
    """Return a folder on the way to `file` in which anybody may put another in its place, or None."""
    for place in file.resolve().parents:
        mode = place.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return place
    return None


def _replaceable(check: str, file: Path, place: Path) -> Finding:
    return fail(check, f"others can replace {file}: anybody may write to {place}", f"run `chmod o-w {place}`")


def data_folder(path: Path) -> Iterator[Finding]:
    """Whether folder and store belong to their owner alone."""
    folder = path.parent
    if not folder.is_dir():
        parent = next(place for place in folder.parents if place.exists())
        yield fine("data", f"{folder} is made at the first start, in {parent}")
        return
    for place in (folder, path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
        if not place.exists():
            continue
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o077:
            yield warn(
                "data",
                f"{place} (mode {mode:04o}) can be read by others; results hold transcript text",
                f"run `chmod {'700' if place.is_dir() else '600'} {place}`",
            )
            return
    yield fine("data", f"{folder} and the store in it are for their owner alone")
