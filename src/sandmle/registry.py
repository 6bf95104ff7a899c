"""Names for implementations: short built-in names, entry points of other packages, and dotted paths.

A name is looked up in this order: the family's built-in table, the family's entry-point group (for example
``sandmle.metrics``), and last as a dotted path ``package.module:attribute``. Nothing is imported before it is needed.
"""

from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from sandmle.errors import ConfigError, unknown_name


def resolve(kind: str, name: str, builtin: Mapping[str, str], group: str) -> Any:
    """Returns the object that a name stands for.

    Args:
        kind: What the name names, for messages: ``metric``.
        name: A built-in name, an entry point's name, or ``package.module:attribute``.
        builtin: Dotted paths by built-in name.
        group: Entry-point group that other packages add to.

    Raises:
        ConfigError: No such name, or what it points to cannot be imported.
    """
    if name in builtin:
        return _load(kind, name, builtin[name])
    plugins = {point.name: point.value for point in entry_points(group=group)}
    if name in plugins:
        return _load(kind, name, plugins[name])
    if ":" in name:
        return _load(kind, name, name)
    raise unknown_name(kind, name, [*builtin, *plugins])


def names(builtin: Mapping[str, str], group: str) -> tuple[str, ...]:
    """Returns all built-in and plugged-in names of a family, sorted."""
    return tuple(sorted({*builtin, *(point.name for point in entry_points(group=group))}))


def _load(kind: str, name: str, path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return reduce(getattr, attribute.split("."), import_module(module))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{kind} {name!r} points to {path!r}, which cannot be loaded: {error}") from error
