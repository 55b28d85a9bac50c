"""Addresses that a person typed: the rules of a settings file's `base_url`, told in terms of the option."""

from __future__ import annotations

from urllib.parse import urlsplit

from aip_hermes.hermes import Endpoint, EndpointInvalid
from aip_hermes.ids import EndpointId

__all__ = ["AddressRefused", "checked_origin", "checked_url"]


class AddressRefused(Exception):
    """An address that can't be used, or a place where nobody answers. The text names the option and the next step."""


def checked_origin(option: str, url: str) -> str:
    """Return `url` as `scheme://host[:port]/`. Raises AddressRefused; the text doesn't repeat a password."""
    origin = url if url.endswith("/") else f"{url}/"
    try:
        Endpoint(id=EndpointId("typed"), base_url=origin)
    except EndpointInvalid as error:
        rule = str(error).replace("base_url", option)
        raise AddressRefused(f"{rule}; an example: http://127.0.0.1:8642") from None
    return origin


def checked_url(option: str, url: str) -> str:
    """Return `url`, whose origin keeps the same rules and which may have a path. Raises AddressRefused."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise AddressRefused(f"{option} is no URL; an example: http://127.0.0.1:11434/v1") from None
    checked_origin(option, f"{parts.scheme}://{parts.netloc}/")
    return url
