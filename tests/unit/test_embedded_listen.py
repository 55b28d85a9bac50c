"""Keys and addresses of an endpoint."""

from __future__ import annotations

import pytest

from aip_hermes.embedded import UnsafeBind, UnsafeKey, check_bind, check_key_strength
from aip_hermes.secret import Secret

FAIR = Secret("k-0123456789abcd")
STRONG = Secret("k-0123456789abcdef0123456789abcdef")


@pytest.mark.parametrize(
    "text", ["short", "k-0123456789abc", "x" * 40, "changeme-changeme-changeme", "YOUR_API_KEY_HERE"]
)
@pytest.mark.requirement("embedded:listen:strength")
def test_weak_keys_are_refused_without_being_named(text: str) -> None:
    with pytest.raises(UnsafeKey) as refused:
        check_key_strength(Secret(text))
    assert text not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "::1", "[::1]", "::ffff:127.0.0.1"])
@pytest.mark.requirement("embedded:listen:strength")
def test_loopback_takes_a_fair_key(host: str) -> None:
    check_bind(host, FAIR)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "::ffff:0.0.0.0", "192.168.1.5", "example.internal", "localhost.example", ""]
)
@pytest.mark.requirement("embedded:listen:strength")
def test_other_addresses_need_a_strong_key(host: str) -> None:
    with pytest.raises(UnsafeBind):
        check_bind(host, FAIR)
    with pytest.raises(UnsafeBind):
        check_bind(host, Secret("ab12-" * 8))
    check_bind(host, STRONG)
