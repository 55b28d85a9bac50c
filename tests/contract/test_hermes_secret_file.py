"""The file that holds a credential."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aip_hermes.secret import MAX_SECRET_BYTES, Secret, SecretFileError, read_secret_file

_TEXT = "planted-key-0123456789"


def _file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    file = folder / "key"
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.requirement("hermes:secret:file-rules")
@pytest.mark.parametrize("content", [_TEXT, _TEXT + "\n", _TEXT + "\r\n", f"  {_TEXT}\t\n"])
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_its_owner_is_read_and_trimmed(tmp_path: Path, content: str, mode: int) -> None:
    assert read_secret_file(_file(tmp_path, content.encode(), mode)) == Secret(_TEXT)


@pytest.mark.requirement("hermes:secret:file-rules")
@pytest.mark.parametrize(
    "content", [b"", b" \n", b"\xff\xfe", f"{_TEXT} {_TEXT}".encode(), b"x" * (MAX_SECRET_BYTES + 1), b"a\x00b"]
)
def test_a_content_that_is_no_credential_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SecretFileError) as caught:
        read_secret_file(_file(tmp_path, content))
    assert _TEXT not in str(caught.value)
    assert str(tmp_path / "key") in str(caught.value)


@pytest.mark.requirement("hermes:secret:file-rules")
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660])
def test_a_file_open_to_others_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SecretFileError, match="chmod 600"):
        read_secret_file(_file(tmp_path, _TEXT.encode(), mode))


@pytest.mark.requirement("hermes:secret:file-rules")
def test_links_folders_pipes_and_missing_files_are_refused(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(_file(tmp_path, _TEXT.encode()))
    os.mkfifo(pipe, 0o600)
    for path in (link, pipe, tmp_path, tmp_path / "missing", tmp_path / "missing" / "key"):
        with pytest.raises(SecretFileError):
            read_secret_file(path)
