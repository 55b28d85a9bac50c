"""Schedules of jobs: which there are, and when they come next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aip_hermes.hermes_api import ScheduleRefused, next_run, parse_schedule

NOW = datetime(2030, 1, 31, 23, 14, 43, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "schedule", "first"),
    [
        ("30m", {"kind": "once", "display": "once in 30m"}, "2030-01-31T23:44:43.500000+00:00"),
        (" 2 hours ", {"kind": "once", "display": "once in 2 hours"}, "2030-02-01T01:14:43.500000+00:00"),
        ("1D", {"kind": "once", "display": "once in 1D"}, "2030-02-01T23:14:43.500000+00:00"),
        (
            "every 2h",
            {"kind": "interval", "minutes": 120, "display": "every 120m"},
            "2030-02-01T01:14:43.500000+00:00",
        ),
        (
            "EVERY 45 min",
            {"kind": "interval", "minutes": 45, "display": "every 45m"},
            "2030-01-31T23:59:43.500000+00:00",
        ),
        (
            "2031-01-01",
            {"kind": "once", "display": "once at 2031-01-01 00:00"},
            "2031-01-01T00:00:00+00:00",
        ),
        (
            "2031-01-01T10:00:00+02:00",
            {"kind": "once", "display": "once at 2031-01-01 10:00"},
            "2031-01-01T10:00:00+02:00",
        ),
    ],
)
@pytest.mark.requirement("hermes_api:schedule:forms")
def test_each_form_has_its_object_and_its_first_moment(text: str, schedule: dict[str, object], first: str) -> None:
    parsed = parse_schedule(text, now=NOW)

    assert {name: value for name, value in parsed.items() if name != "run_at"} == schedule
    assert next_run(parsed, after=NOW) == first


@pytest.mark.parametrize(
    ("expr", "moments"),
    [
        ("0 3 * * *", ["02-01T03:00", "02-02T03:00"]),
        ("*/15 * * * *", ["01-31T23:15", "01-31T23:30"]),
        ("50/5 23 * * *", ["01-31T23:50", "01-31T23:55"]),
        ("0 9 * * 1-5", ["02-01T09:00", "02-04T09:00"]),
        ("0 9 * * 7", ["02-03T09:00", "02-10T09:00"]),
        ("0 0 31 * *", ["03-31T00:00", "05-31T00:00"]),
        # Both kinds of day given: either of them suffices.
        ("0 0 13 * 5", ["02-01T00:00", "02-08T00:00", "02-13T00:00"]),
        ("0 0 1,15 2 *", ["02-01T00:00", "02-15T00:00"]),
    ],
)
@pytest.mark.requirement("hermes_api:schedule:next", "hermes_api:schedule:forms")
def test_cron_texts_come_when_they_say(expr: str, moments: list[str]) -> None:
    schedule, found, after = parse_schedule(expr, now=NOW), [], NOW
    assert schedule == {"kind": "cron", "expr": expr, "display": expr}
    for _ in moments:
        text = next_run(schedule, after=after)
        assert text is not None
        after = datetime.fromisoformat(text)
        found.append(after.strftime("%m-%dT%H:%M"))

    assert found == moments


@pytest.mark.requirement("hermes_api:schedule:next")
def test_a_leap_day_is_waited_for() -> None:
    start = datetime(2096, 3, 1, tzinfo=UTC)
    schedule = parse_schedule("0 0 29 2 *", now=start)

    assert next_run(schedule, after=start) == "2104-02-29T00:00:00+00:00"


@given(
    st.tuples(st.integers(0, 59), st.integers(0, 23)),
    st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)),  # noqa: DTZ001 - made UTC below
)
@settings(max_examples=50, deadline=None)
@pytest.mark.requirement("hermes_api:schedule:next")
def test_a_daily_moment_lies_within_a_day_and_after_now(at: tuple[int, int], naive: datetime) -> None:
    now = naive.replace(tzinfo=UTC)
    text = next_run(parse_schedule(f"{at[0]} {at[1]} * * *", now=now), after=now)

    assert text is not None
    moment = datetime.fromisoformat(text)
    assert (moment.minute, moment.hour) == at
    assert now < moment <= now + timedelta(days=1)


@pytest.mark.parametrize(
    "text",
    [
        "", "whenever", "30s", "0m", "every 0m", "every", "every monday", "1w", "99999999999d", "0 9 * * MON",
        "@daily", "0 0 9 * * *", "0 0 30 2 *", "61 * * * *", "0 24 * * *", "0 0 0 * *", "*/0 * * * *", "5-1 * * * *",
        "*5 * * * *", "1,,2 * * * *", "2020-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "2031-13-01",
    ],
)  # fmt: skip
@pytest.mark.requirement("hermes_api:schedule:refused")
def test_what_never_comes_is_refused(text: str) -> None:
    with pytest.raises(ScheduleRefused):
        parse_schedule(text, now=NOW)


@given(st.text(alphabet="0123456789*/,- every mhd:TZ+", max_size=24))
@settings(max_examples=300, deadline=None)
@pytest.mark.requirement("hermes_api:schedule:refused")
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = parse_schedule(text, now=NOW)
    except ScheduleRefused:
        return
    assert next_run(schedule, after=NOW)
