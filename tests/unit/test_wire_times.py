"""RFC 3339 text and Unix milliseconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from aip_hermes import wire

pytestmark = pytest.mark.requirement("wire:times:rfc3339")

_EARLIEST = -62135596800000
_LATEST = 253402300799999


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (500, "1970-01-01T00:00:00.5Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_927_000_000_120, "2031-01-24T05:46:40.12Z"),
        (_EARLIEST, "0001-01-01T00:00:00Z"),
        (_LATEST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_milliseconds_are_written_with_a_trimmed_fraction(ms: int, text: str) -> None:
    assert wire.rfc3339(ms) == text
    assert wire.parse_rfc3339(text) == ms


@given(st.integers(min_value=_EARLIEST, max_value=_LATEST))
def test_every_millisecond_survives(ms: int) -> None:
    assert wire.parse_rfc3339(wire.rfc3339(ms)) == ms


@pytest.mark.parametrize("ms", [_EARLIEST - 1, _LATEST + 1, 10**30])
def test_a_year_beyond_the_calendar_is_not_written(ms: int) -> None:
    with pytest.raises(ValueError, match="0001 to 9999"):
        wire.rfc3339(ms)


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2031-02-03 04:05:06z", "2031-02-03T04:05:06Z"),
        ("2031-02-03\n04:05:06Z", "2031-02-03T04:05:06Z"),
        ("2031-02-03T04:05:06.5000Z", "2031-02-03T04:05:06.5Z"),
        ("2031-02-03T04:05:06.123456789012Z", "2031-02-03T04:05:06.123Z"),
        ("2031-02-03T04:05:06+00:00", "2031-02-03T04:05:06Z"),
        ("2031-02-03T00:30:06+23:59", "2031-02-02T00:31:06Z"),
        ("2031-02-03T04:05:06-01:30", "2031-02-03T05:35:06Z"),
        ("2032-02-29T00:00:00Z", "2032-02-29T00:00:00Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999Z"),
        ("2017-01-01T00:59:60+01:00", "2016-12-31T23:59:59.999Z"),
    ],
)
def test_every_form_of_the_standard_is_read(text: str, same_as: str) -> None:
    assert wire.rfc3339(wire.parse_rfc3339(text)) == same_as


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2031-02-03",
        "2031-02-03T04:05:06",
        "2031-02-03T04:05Z",
        "31-02-03T04:05:06Z",
        "2031-2-3T04:05:06Z",
        "2031-02-03T04:05:06.Z",
        "2031-02-03T04:05:06Z ",
        "2031-02-03T04:05:06+0100",
        "2031-02-03T04:05:06+24:00",
        "2031-02-03T04:05:06+01:60",
        "2031-02-03TT04:05:06Z",
        "2031-02-29T04:05:06Z",
        "2031-13-01T04:05:06Z",
        "2031-02-03T24:00:00Z",
        "2031-02-03T04:05:60Z",
        "2016-12-30T23:59:60Z",
        "2016-12-31T23:59:61Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "２０３１-02-03T04:05:06Z",
    ],
)
def test_anything_else_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|calendar|leap") as refused:
        wire.parse_rfc3339(text)
    assert not text or text not in str(refused.value)


def test_an_object_keeps_the_text_of_its_time() -> None:
    event = {"id": "evt_1", "kind": "k", "occurred_at": "2031-02-03T04:05:06.123456789+02:00"}
    assert wire.Event.model_validate(event).wire() == event


def test_an_object_refuses_a_bad_time() -> None:
    with pytest.raises(ValidationError) as refused:
        wire.Event(id="evt_1", kind="k", occurred_at="yesterday")
    assert wire.violations(refused.value) == ["occurred_at: Value error, not an RFC 3339 time"]
    assert not wire.breaks_rules_only(refused.value)
