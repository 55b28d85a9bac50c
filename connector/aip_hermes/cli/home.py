"""The data folder of an installation: secrets, the approval authority, the settings file.

Everything is made once and never overwritten. The folder is 0700, its secrets are 0600.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from aip_hermes.database.drafts import draft_beside, publish

__all__ = [
    "REQUESTER",
    "REVIEWER",
    "TENANT",
    "Home",
    "HomeRefused",
    "authority_entry",
    "make_hermes_home",
    "make_home",
    "write_new",
]

REQUESTER = "agent:local:requester"
REVIEWER = "human:local:reviewer"
TENANT = "local"
_IGNORE_ALL = "*\n"


class HomeRefused(Exception):
    """The folder can't be used. The text names the path, the cause and the next step."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """Where the parts of an installation lie. hermes: data of the embedded endpoint, with its key."""

    folder: Path
    reviewer_folder: Path

    @property
    def settings(self) -> Path:
        return self.folder / "aip-hermes.toml"

    @property
    def requester_token(self) -> Path:
        return self.folder / "tokens" / "requester"

    @property
    def reviewer_token(self) -> Path:
        return self.reviewer_folder / "reviewer"

    @property
    def authority(self) -> Path:
        return self.folder / "approval-authority.json"

    @property
    def hermes(self) -> Path:
        return self.folder / "hermes"

    @property
    def hermes_key(self) -> Path:
        return self.hermes / "key"


def make_home(folder: Path, *, reviewer_folder: Path | None = None) -> Home:
    """Make the folder and what is missing in it, apart from the settings file.

    Raises: HomeRefused where the place is no folder or can't be written.
    """
    home = Home(folder=folder, reviewer_folder=reviewer_folder or folder / "tokens")
    for place in (home.folder, home.requester_token.parent, home.reviewer_folder):
        _make_folder(place)
    for secret in (home.requester_token, home.reviewer_token):
        write_new(secret, _new_secret())
    make_hermes_home(home.hermes)
    write_new(home.authority, json.dumps([authority_entry(REVIEWER)], indent=2) + "\n")
    return home


def make_hermes_home(folder: Path) -> Path:
    """Make the folder of an embedded Hermes and its key where they are missing; return the key's file."""
    _make_folder(folder)
    write_new(folder / "key", _new_secret())
    return folder / "key"


def _make_folder(place: Path) -> None:
    """Make a folder for its owner alone; one that we made is kept out of the repository that it may lie in."""
    ours = not place.exists()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HomeRefused(f"{place} can't be made: {error.strerror}; choose another folder") from None
    if ours and not _ignores_itself(place.parent):
        write_new(place / ".gitignore", _IGNORE_ALL)


def _ignores_itself(place: Path) -> bool:
    try:
        return (place / ".gitignore").read_text(encoding="utf-8", errors="replace") == _IGNORE_ALL
    except OSError:
        return False


def _new_secret() -> str:
    return secrets.token_urlsafe(32) + "\n"


def authority_entry(principal_id: str, tenant_id: str = TENANT) -> dict[str, object]:
    """Return an entry of the approval-authority file: who may decide, in which tenant."""
    return {
        "principal_id": principal_id,
        "tenant_id": tenant_id,
        "roles": ["session-reviewer"],
        "groups": [],
        "tenant_policies": ["hermes-session-approval"],
        "external_systems": [],
        "delegated_scopes": [],
        "revision": 1,
        "revoked": False,
    }


def write_new(path: Path, text: str) -> bool:
    """Write `path` (0600) unless it exists; return whether it was written. The file appears whole or not at all."""
    if path.exists():
        return False
    try:
        draft = draft_beside(path)
        try:
            draft.write_text(text, encoding="utf-8")
            publish(draft, path, force=False)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise HomeRefused(f"{path} can't be written: {error.strerror}; choose another folder") from None
    return True
