"""User ids for executions: no two slots on a machine share one, and no real user has them."""

import secrets
from pathlib import Path

SLOTS = 64
"""User ids per sandbox."""
_FIRST, _LAST = 1_000_000_000, 2_000_000_000
_MIN_FIRST = 10_000


def pick_first_uid() -> int:
    """Returns the first of ``SLOTS`` user ids for a sandbox, picked at random: no run depends on it.

    Where this process sees only a part of all ids (root in a container with mapped users), the upper half of that part
    is used.
    """
    first, last = _FIRST, _LAST
    mapped = [
        (int(start), int(start) + int(count))
        for start, _, count in (line.split() for line in Path("/proc/self/uid_map").read_text().splitlines())
    ]
    if not any(start <= first and last <= end for start, end in mapped):
        start, last = max(mapped, key=lambda pair: pair[1] - pair[0], default=(0, 0))
        first = max(_MIN_FIRST, (start + last) // 2)
    blocks = (last - first) // SLOTS
    return first + secrets.randbelow(blocks) * SLOTS if blocks > 0 else first
