"""Keys of an endpoint."""

from __future__ import annotations

import pytest

from aip_hermes.embedded import UnsafeKey, check_key_strength
from aip_hermes.secret import Secret


@pytest.mark.parametrize(
    "text", ["short", "k-0123456789abc", "x" * 40, "changeme-changeme-changeme", "YOUR_API_KEY_HERE"]
)
@pytest.mark.requirement("embedded:listen:strength")
def test_weak_keys_are_refused_without_being_named(text: str) -> None:
    with pytest.raises(UnsafeKey) as refused:
        check_key_strength(Secret(text))
    assert text not in str(refused.value)


@pytest.mark.requirement("embedded:listen:strength")
def test_a_fair_key_is_enough() -> None:
    check_key_strength(Secret("k-0123456789abcd"))
