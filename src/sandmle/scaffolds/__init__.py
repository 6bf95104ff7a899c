"""Scaffolds: the loop round a model. Only ``react`` is built so far."""

from collections.abc import Mapping
from types import MappingProxyType

from sandmle import registry
from sandmle.scaffolds.base import Scaffold

BUILTIN: Mapping[str, str] = MappingProxyType({"react": "sandmle.scaffolds.react:ReactScaffold"})
ENTRY_POINTS = "sandmle.scaffolds"

__all__ = ["BUILTIN", "Scaffold", "open_scaffold"]


def open_scaffold(name: str) -> Scaffold:
    """Returns a scaffold by name: built in, an entry point of ``sandmle.scaffolds``, or ``package.module:Class``.

    Raises:
        ConfigError: There is no scaffold of that name.
    """
    scaffold: Scaffold = registry.resolve("scaffold", name, BUILTIN, ENTRY_POINTS)()
    return scaffold
