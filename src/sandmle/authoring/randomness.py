"""Random generators that depend on nothing but the words they are named by."""

import hashlib

import numpy as np


def rng_for(*parts: str | int) -> np.random.Generator:
    """Returns a generator that is the same in every process for the same parts, in any order of calls.

    Args:
        parts: What the numbers are for, for example ``("ladder", task_id, 3)``.
    """
    return np.random.default_rng(int.from_bytes(digest_of(*parts)[:16], "big"))


def digest_of(*parts: str | int) -> bytes:
    """Returns the SHA-256 of the parts; ``("a", "bc")`` and ``("ab", "c")`` differ."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).digest()
