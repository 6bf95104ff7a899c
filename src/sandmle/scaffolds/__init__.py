"""Scaffolds: the loop round a model. All of them act on the same episodes and write the same record."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sandmle import registry
from sandmle.env import checked
from sandmle.errors import ConfigError, unknown_name
from sandmle.scaffolds.base import Scaffold

BUILTIN: Mapping[str, str] = MappingProxyType(
    {
        "react": "sandmle.scaffolds.react:ReactScaffold",
        "aide": "sandmle.scaffolds.aide:AideScaffold",
        "aira": "sandmle.scaffolds.aira:AiraScaffold",
        "aira_mcts": "sandmle.scaffolds.aira:AiraMctsScaffold",
        "aira_evolutionary": "sandmle.scaffolds.aira:AiraEvolutionaryScaffold",
        "mle_agent": "sandmle.scaffolds.mle_agent:MleAgentScaffold",
    }
)
ENTRY_POINTS = "sandmle.scaffolds"

__all__ = ["BUILTIN", "Scaffold", "open_scaffold", "scaffold_names"]


def scaffold_names() -> tuple[str, ...]:
    """Returns the names of all scaffolds, also of those that other packages add."""
    return registry.names(BUILTIN, ENTRY_POINTS)


def open_scaffold(name: str, options: Mapping[str, Any] | None = None) -> Scaffold:
    """Returns a scaffold by name: built in, an entry point of ``sandmle.scaffolds``, or ``package.module:Class``.

    Args:
        name: The name.
        options: Fields of the class's ``Options``; None or nothing for its defaults.

    Raises:
        ConfigError: There is no scaffold of that name, or it has no such option.
    """
    factory = registry.resolve("scaffold", name, BUILTIN, ENTRY_POINTS)
    if not options:
        made: Scaffold = factory()
        return made
    kind = getattr(factory, "Options", None)
    if kind is None:
        raise ConfigError(f"scaffold {name} has no options; leave out {', '.join(sorted(options))}")
    for key in options:
        if key not in kind.model_fields:
            raise unknown_name(f"option of scaffold {name}", key, kind.model_fields)
    scaffold: Scaffold = factory(checked(kind, options))
    return scaffold
