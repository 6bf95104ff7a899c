"""Fills in the prompts of the scaffolds. Text in, text out."""

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """Returns a template of ``prompts`` filled in."""
    return _environment().get_template(template).render(**values).strip("\n")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("sandmle.scaffolds", "prompts"),
        undefined=StrictUndefined,
        autoescape=False,
        auto_reload=False,
        keep_trailing_newline=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
