"""When a job runs: a delay, an interval, a cron text or a time; and the next moment of each.

All moments are UTC; a time without an offset is taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

__all__ = ["ScheduleRefused", "next_run", "parse_schedule"]

_DELAY = re.compile(
    r"(?P<number>\d{1,6})\s*(?P<unit>m|min|mins|minute|minutes|h|hr|hrs|hour|hours|d|day|days)", re.IGNORECASE
)
_INTERVAL = re.compile(r"every\s+(?P<delay>.+)", re.IGNORECASE)
_MINUTES: Final = {"m": 1, "h": 60, "d": 1440}
_GRACE: Final = timedelta(seconds=120)
_RANGES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CRON_CHARS = re.compile(r"[\d*,/\- ]+")
_PART = re.compile(r"(?P<all>\*)?(?:(?P<low>\d{1,2})(?:-(?P<high>\d{1,2}))?)?(?:/(?P<step>\d{1,2}))?")
_HORIZON_DAYS: Final = 366 * 8 + 2
"""The longest wait of a cron text that ever matches: a 29 February over a year that has none."""


class ScheduleRefused(ValueError):
    """The text is no schedule, or one that never comes. The message is for the caller."""


class _Cron(NamedTuple):
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of day were given: one of them suffices."""


def parse_schedule(text: str, *, now: datetime) -> dict[str, Any]:
    """Return the schedule object that a job shows: `kind` once, interval or cron, `display`, and what the kind needs.

    `30m`, `2 hours`, `1d`: once, from now. `every 2h`: an interval. Five fields of digits, `*`, `,`, `-` and `/`: cron.
    An ISO 8601 time: once. Raises ScheduleRefused, also for a wait of nothing, a time more than two minutes ago and a
    cron text that never comes.
    """
    text = text.strip()
    if delay := _DELAY.fullmatch(text):
        moment = now + timedelta(minutes=_minutes(text, delay))
        return {"kind": "once", "run_at": moment.isoformat(), "display": f"once in {text}"}
    if interval := _INTERVAL.fullmatch(text):
        if not (delay := _DELAY.fullmatch(interval["delay"].strip())):
            raise _unknown(text)
        minutes = _minutes(text, delay)
        return {"kind": "interval", "minutes": minutes, "display": f"every {minutes}m"}
    if len(text.split()) == len(_RANGES) and _CRON_CHARS.fullmatch(text):
        if _next_match(_cron(text), after=now) is None:
            raise ScheduleRefused(f"The cron text '{text}' never comes")
        return {"kind": "cron", "expr": text, "display": text}
    return _at(text, now=now)


def next_run(schedule: Mapping[str, Any], *, after: datetime) -> str | None:
    """Return the next moment of a schedule object as ISO text; None where there is none."""
    match schedule["kind"]:
        case "interval":
            return (after + timedelta(minutes=schedule["minutes"])).isoformat()
        case "cron":
            moment = _next_match(_cron(schedule["expr"]), after=after)
            return None if moment is None else moment.isoformat()
        case _:
            return str(schedule["run_at"])


def _at(text: str, *, now: datetime) -> dict[str, Any]:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        past = moment < now - _GRACE
    except (ValueError, OverflowError):
        raise _unknown(text) from None
    if past:
        raise ScheduleRefused(f"The time {moment.isoformat()} is in the past")
    return {"kind": "once", "run_at": moment.isoformat(), "display": f"once at {moment:%Y-%m-%d %H:%M}"}


def _minutes(text: str, delay: re.Match[str]) -> int:
    minutes = int(delay["number"]) * _MINUTES[delay["unit"][0].lower()]
    if minutes == 0:
        raise ScheduleRefused(f"The schedule '{text}' waits for nothing")
    return minutes


def _cron(text: str) -> _Cron:
    fields = text.split()
    sets = [_values(text, field, low, high) for field, (low, high) in zip(fields, _RANGES, strict=True)]
    weekdays = frozenset(day % 7 for day in sets[4])
    both = not fields[2].startswith("*") and not fields[4].startswith("*")
    return _Cron(sets[0], sets[1], sets[2], sets[3], weekdays, both)


def _values(text: str, field: str, lowest: int, highest: int) -> frozenset[int]:
    values: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        step = int(match["step"] or 1) if match else 0
        if not match or step == 0 or (match["all"] is None) == (match["low"] is None):
            raise ScheduleRefused(f"The cron text '{text}' has a field '{field}' that can't be read")
        low = lowest if match["all"] else int(match["low"])
        # `5/10` runs from 5 to the end; a plain `5` is 5 alone.
        alone = highest if match["all"] or match["step"] else low
        high = int(match["high"]) if match["high"] else alone
        if not lowest <= low <= high <= highest:
            raise ScheduleRefused(f"The cron text '{text}' has a field '{field}' out of its range")
        values.update(range(low, high + 1, step))
    return frozenset(values)


def _next_match(cron: _Cron, *, after: datetime) -> datetime | None:
    first = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    for day in range(_HORIZON_DAYS):
        date = first + timedelta(days=day)
        if not _on_day(cron, date):
            continue
        for hour in sorted(cron.hours):
            for minute in sorted(cron.minutes):
                moment = date.replace(hour=hour, minute=minute)
                if moment >= first:
                    return moment
    return None


def _on_day(cron: _Cron, date: datetime) -> bool:
    if date.month not in cron.months:
        return False
    of_month, of_week = date.day in cron.days, date.isoweekday() % 7 in cron.weekdays
    return of_month or of_week if cron.either_day else of_month and of_week


def _unknown(text: str) -> ScheduleRefused:
    return ScheduleRefused(
        f"No schedule: '{text}'. A delay (30m, 2h, 1d), an interval (every 30m), a cron text (0 9 * * *) or a time "
        "(2030-02-03T14:00:00)"
    )
