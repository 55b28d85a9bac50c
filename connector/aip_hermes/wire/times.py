"""Times on the wire: RFC 3339 text outside, Unix milliseconds (UTC) inside.

Source: wire model §1.4. Years run from 0001 to 9999.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

__all__ = ["parse_rfc3339", "rfc3339"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d).(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII | re.DOTALL
)


def rfc3339(ms: int) -> str:
    """Write Unix milliseconds in UTC; a fraction only when there is one, without trailing zeros.

    Raises: ValueError outside the years 0001 to 9999.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise ValueError("a time lies in the years 0001 to 9999") from None
    fraction = f".{moment.microsecond // 1000:03d}".rstrip("0") if moment.microsecond else ""
    return f"{moment.date().isoformat()}T{moment:%H:%M:%S}{fraction}Z"


def parse_rfc3339(text: str) -> int:
    """Read Unix milliseconds; what is finer is cut off. The second 60 counts where a leap second can be: at the end
    of a month, 23:59:60 in UTC.

    Raises: ValueError; its text names the rule, not the input.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError("not an RFC 3339 time")
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    fraction, zulu, sign, offset_hour, offset_minute = match.group(7, 8, 9, 10, 11)
    offset = timedelta()
    if not zulu:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            raise ValueError("the offset of a time is at most 23:59")
        offset = timedelta(hours=int(offset_hour), minutes=int(offset_minute)) * (-1 if sign == "-" else 1)
    leap = second == 60
    try:
        moment = datetime(year, month, day, hour, minute, 59 if leap else second, tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        raise ValueError("not a date and time of the calendar") from None
    if leap:
        if (moment.hour, moment.minute) != (23, 59) or (moment + timedelta(seconds=1)).day != 1:
            raise ValueError("second 60 is no leap second here")
        fraction = "999"
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int((fraction or "").ljust(3, "0")[:3])
