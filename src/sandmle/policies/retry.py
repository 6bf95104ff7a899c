"""How long to wait before asking a server again. Pure functions."""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from random import Random

_FIRST_WAIT_S = 1.0


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Returns the seconds that a server asks for, or None if it does not say so in a way that makes sense.

    Args:
        headers: Names in lower case; read are ``retry-after-ms`` and ``retry-after``, in seconds or as a date.
        now_s: Seconds since the epoch, to measure a date against.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now_s)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def wait_s(n_tries: int, asked_s: float | None, max_wait_s: float, rng: Random) -> float:
    """Returns how long to wait: what the server asks for or an exponential pause, with jitter, never above the cap.

    Args:
        n_tries: Tries so far, 1 or more.
        asked_s: What the server asks for; the wait is not shorter unless the cap is.
        max_wait_s: The cap.
        rng: For the jitter, so that many clients do not come back at the same moment.
    """
    if asked_s is not None:
        return min(max_wait_s, asked_s * (1.0 + 0.1 * rng.random()))
    pause_s = _FIRST_WAIT_S * 2.0 ** min(n_tries - 1, 16)
    return min(max_wait_s, pause_s) * (0.5 + 0.5 * rng.random())


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
