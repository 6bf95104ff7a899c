"""A small model for tests: random weights, a tokenizer made on the spot."""

from functools import lru_cache
from typing import Any

from sandmle.training.recipe import TinyConfig
from sandmle.training.tiny import make_tiny

TEXTS = (
    ("a", "You are an expert.\nimport pandas as pd\nprint(1)\n" * 20),
    ("b", "Observation:\nsubmission.csv is there\n" * 20),
)


@lru_cache(maxsize=1)
def tiny() -> tuple[Any, Any]:
    return make_tiny(TEXTS, TinyConfig(vocab=400, hidden=32, context=512))
