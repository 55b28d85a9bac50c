"""What counts as this machine, asked both ways."""

from __future__ import annotations

import pytest

from aip_hermes.loopback import bound_for_this_machine_only, dials_this_machine


@pytest.mark.requirement(
    "client:send:loopback-not-proxied", "hermes:transport:loopback-meets-no-proxy", "settings:server:non-loopback"
)
@pytest.mark.parametrize(
    ("host", "dialled_here", "bound_here"),
    [
        ("127.0.0.1", True, True),
        ("127.9.9.9", True, True),
        ("::1", True, True),
        ("::ffff:127.0.0.1", True, True),
        ("localhost", True, True),
        ("LOCALHOST", True, True),
        ("LOCALHOST.", True, False),
        ("aip.localhost", True, False),
        ("0.0.0.0", True, False),
        ("::", True, False),
        ("::ffff:0.0.0.0", True, False),
        ("0", False, False),
        ("192.168.1.5", False, False),
        ("::ffff:192.168.1.5", False, False),
        ("10.0.0.1", False, False),
        ("127.0.0.1.example.org", False, False),
        ("localhost.example.test", False, False),
        ("notlocalhost", False, False),
        ("example.internal", False, False),
        ("", False, False),
    ],
)
def test_this_machine_is_told_by_the_text_alone(host: str, dialled_here: bool, bound_here: bool) -> None:
    assert dials_this_machine(host) is dialled_here
    assert bound_for_this_machine_only(host) is bound_here
