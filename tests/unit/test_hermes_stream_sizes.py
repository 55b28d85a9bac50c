"""Which frames of a stream may be larger than a frame may be."""

from __future__ import annotations

import pytest

from aip_hermes.hermes.stream import (
    may_exceed,
)


@pytest.mark.requirement("hermes:streams:large-ending")
@pytest.mark.parametrize(
    ("event", "head", "allowed"),
    [
        ("run.completed", b"{", True),
        ("response.completed", b"{", True),
        ("assistant.completed", b"{", True),
        ("assistant.delta", b"{", False),
        ("tool.completed", b'{"event": "run.completed"', False),
        (None, b'{"event": "run.completed", "run_id"', True),
        (None, b'{ "event":"run.completed"', True),
        (None, b'{"event": "message.delta", "delta": "{\\"event\\": \\"run.completed\\"', False),
        (None, b'{"delta": "x"', False),
        (None, b"", False),
    ],
)
def test_only_what_repeats_may_be_larger_than_a_frame(event: str | None, head: bytes, allowed: bool) -> None:
    assert may_exceed(event, head) is allowed
