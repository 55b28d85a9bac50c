"""Where a client's bearer token comes from: a private file, or a value somebody already holds.

File rules (ours to check before anything is sent): a regular file, not a link, readable by its owner alone, 1 to 16,384
bytes, UTF-8. The text names path and rule, never content.
"""

from __future__ import annotations

from pathlib import Path

from aip_hermes.client.failures import ClientFailure
from aip_hermes.secret import Secret, SecretFileError, read_secret_file

__all__ = ["TokenRefused", "load_token"]

_COPY_AGAIN = "copy the token again, without line breaks or quotes"


class TokenRefused(ClientFailure, code="client.token_refused", category="auth"):
    """The token can't be used; nothing was sent."""


def load_token(*, value: str | None = None, file: Path | None = None) -> Secret | None:
    """Return the token given by value or file, or None. Raises: TokenRefused."""
    if value is None and file is None:
        return None
    where = "the bearer token" if file is None else f"the token in {file}"
    try:
        token = read_secret_file(file) if file is not None else Secret((value or "").strip())
    except SecretFileError as exc:
        raise TokenRefused(str(exc), next_step="name the token file that the server's set-up wrote for you") from exc
    except ValueError as exc:
        raise TokenRefused(f"{where} can't be used: {exc}", next_step=_COPY_AGAIN) from exc
    # A header carries it; what no header can carry is named here and not by a library, which would show the value.
    if not token.reveal().isascii():
        raise TokenRefused(f"{where} can't be used: it is not ASCII", next_step=_COPY_AGAIN)
    return token
