"""The prompts, as Jinja templates: one file a role, its system part above a line of equals signs."""

import jinja2

_BORDER = "=" * 8


def render(name: str, **facts: object) -> tuple[str, str]:
    """Returns the system and the user part of a prompt.

    Args:
        name: A role, or ``repair``.
        facts: What the template names; a missing one is an error.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sandmle.authoring.roles", "prompts"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    text = environment.get_template(f"{name}.md.j2").render(**facts)
    system, border, user = text.partition(_BORDER)
    return (system.strip(), user.strip()) if border else ("", text.strip())
