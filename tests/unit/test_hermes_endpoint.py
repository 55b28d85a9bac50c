"""Values that an endpoint can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes.hermes import Endpoint, EndpointInvalid
from aip_hermes.secret import Secret

_GOOD: Mapping[str, Any] = {"id": "primary", "base_url": "http://127.0.0.1:8642"}


@pytest.mark.requirement("hermes:endpoint:rules")
@pytest.mark.parametrize(
    ("given", "member", "value"),
    [
        ({"id": "  Primary "}, "id", "primary"),
        ({"id": "A-1_b"}, "id", "a-1_b"),
        ({"id": "x" * 128}, "id", "x" * 128),
        ({}, "base_url", "http://127.0.0.1:8642/"),
        ({"base_url": "https://hermes.example/"}, "base_url", "https://hermes.example/"),
        ({"base_url": "http://xn--e1afmkfd.example.:1"}, "base_url", "http://xn--e1afmkfd.example.:1/"),
        ({"base_url": "http://[::1]:8642"}, "base_url", "http://[::1]:8642/"),
        ({}, "turn_timeout_s", 900.0),
        ({}, "on_closed", "forward"),
        ({"display_name": "Support"}, "display_name", "Support"),
    ],
)
def test_configured_text_becomes_an_endpoint(given: Mapping[str, Any], member: str, value: object) -> None:
    assert getattr(Endpoint.check(**{**_GOOD, **given}), member) == value


@pytest.mark.requirement("hermes:endpoint:rules")
@pytest.mark.parametrize(
    "given",
    [
        {"id": ""},
        {"id": "a b"},
        {"id": "a.b"},
        {"id": "é"},
        {"id": "x" * 129},
        {"base_url": "ftp://host/"},
        {"base_url": "http:///"},
        {"base_url": "127.0.0.1:8642"},
        {"base_url": "http://user:pass@host/"},
        {"base_url": "http://user@host/"},
        {"base_url": "http://host/path"},
        {"base_url": "http://host/?q"},
        {"base_url": "http://host/#f"},
        {"base_url": "http://host/?"},
        {"base_url": "http://host:port/"},
        {"base_url": "http://host:99999/"},
        {"base_url": "http://256.1.1.1/"},
        {"base_url": "http://010.1.1.1:8642/"},
        {"base_url": "http://ho st/"},
        {"base_url": "http://[::1/"},
        {"base_url": "http://a..b/"},
        {"base_url": "http://a|b/"},
        {"base_url": "http://é.example/"},
        {"base_url": "http://" + "x" * 64 + "/"},
        {"base_url": "http://" + "x." * 130 + "x/"},
        {"tenant_id": " t"},
        {"tenant_id": ""},
        {"tenant_id": "t\n"},
        {"tenant_id": "x" * 513},
        {"display_name": ""},
        {"display_name": " x"},
        {"display_name": "x" * 257},
        {"display_name": "a\x7fb"},
        {"turn_timeout_s": 0},
        {"turn_timeout_s": float("nan")},
        {"turn_timeout_s": 86_401},
        {"on_closed": "maybe"},
    ],
)
def test_a_broken_value_is_refused_with_its_rule_and_without_the_value(given: Mapping[str, Any]) -> None:
    with pytest.raises(EndpointInvalid) as caught:
        Endpoint.check(**{**_GOOD, **given})
    assert "pass" not in str(caught.value).replace("password", "")


@pytest.mark.requirement("hermes:endpoint:rules")
@pytest.mark.parametrize(
    ("base_url", "loopback"),
    [
        ("http://[::1]/", True),
        ("http://localhost/", True),
        ("http://LOCALHOST:8642/", True),
        ("http://localhost.example/", False),
    ],
)
def test_loopback_is_told_by_the_name_alone(base_url: str, loopback: bool) -> None:
    assert Endpoint.check(id="a", base_url=base_url).loopback is loopback


@pytest.mark.requirement("hermes:secret:shows-itself-nowhere")
def test_an_endpoint_does_not_show_its_key() -> None:
    assert "planted" not in repr(Endpoint.check(**_GOOD, key=Secret("planted-key-0123456789")))
