"""The prompts, as Jinja templates: one file a role, its system part above a line of equals signs."""

from functools import cache

import jinja2

_BORDER = "=" * 8


def render(name: str, **facts: object) -> tuple[str, str]:
    """Returns the system and the user part of a prompt.

    Args:
        name: A role, or ``repair``.
        facts: What the template names; a missing one is an error.
    """
    text = _environment().get_template(f"{name}.md.j2").render(**facts)
    system, border, user = text.partition(_BORDER)
    return (system.strip(), user.strip()) if border else ("", text.strip())


@cache
def _environment() -> jinja2.Environment:
    """Returns the templates, each read and compiled once."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("sandmle.authoring.roles", "prompts"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        auto_reload=False,
    )
