"""A user's settings, from YAML, JSON or a command line, as a configuration; mistakes become one sentence."""

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from sandmle.errors import ConfigError, SandmleError, unknown_name
from sandmle.records import Limits, Record
from sandmle.registry import resolve
from sandmle.sandbox.base import Capability, Sandbox
from sandmle.sandbox.config import (
    BACKENDS,
    DEFAULT_BACKEND,
    PLUGIN_GROUP,
    AnyConfig,
    BwrapConfig,
    ContainerConfig,
    ForkserverConfig,
    RestrictedConfig,
    make_sandbox,
    open_sandbox,
)

_KINDS: dict[str, type[AnyConfig]] = {
    "forkserver": ForkserverConfig,
    "bwrap": BwrapConfig,
    "restricted": RestrictedConfig,
    "docker": ContainerConfig,
    "podman": ContainerConfig,
}


def sandbox_config(settings: Mapping[str, Any]) -> AnyConfig:
    """Returns the configuration that plain settings describe.

    Args:
        settings: ``backend`` (the default one if it is not named) and that backend's fields.

    Raises:
        ConfigError: The backend, a setting, a capability or a value is not known or not allowed.
    """
    backend = settings.get("backend", DEFAULT_BACKEND)
    if backend not in _KINDS:
        raise unknown_name("sandbox", str(backend), BACKENDS)
    kind = _KINDS[backend]
    try:
        return kind.model_validate({**settings, "backend": backend})
    except ValidationError as error:
        raise _sentence(error, kind, f"the {backend} sandbox") from error


def open_backend(text: str, *, workers: int | None = None) -> Sandbox:
    """Returns a started sandbox as a command line names it.

    Args:
        text: A backend's name: a built-in one, a plug-in's, or a dotted path. After a built-in one may follow its
            settings: ``forkserver,libraries=torch,python=/opt/venv/bin/python``.
        workers: Executions at the same time, unless the text says it.

    Raises:
        ConfigError: The name or a setting is not known, or not allowed.
        SandboxUnavailableError: This machine cannot run that backend.
    """
    config = _named(text, workers)
    return _plugin(text, workers).start() if config is None else open_sandbox(config)


def check_backend(text: str) -> None:
    """Refuses what ``open_backend`` would refuse before it starts anything.

    Raises:
        ConfigError: The name or a setting is not known or not allowed, or what the name points to is no sandbox.
    """
    config = _named(text, None)
    if config is None:
        _plugin(text, 1)
    else:
        make_sandbox(config)


def _plugin(name: str, workers: int | None) -> Sandbox:
    factory = resolve("sandbox", name, BACKENDS, PLUGIN_GROUP)
    try:
        sandbox = factory(workers=workers)
    except SandmleError:
        raise
    except Exception as error:  # anything that can be imported may stand behind a name
        raise ConfigError(f"sandbox {name!r} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(sandbox, Sandbox):
        raise ConfigError(f"sandbox {name!r} gives no sandbox but an object of type {type(sandbox).__name__}")
    return sandbox


def _named(text: str, workers: int | None) -> AnyConfig | None:
    """Returns the configuration of a built-in backend; None for another name."""
    name, *pairs = text.split(",")
    if name not in _KINDS and not pairs:
        return None
    settings: dict[str, Any] = {"workers": workers, "backend": name}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"setting {pair!r} of the sandbox {name} has no value; write it as name=value")
        try:
            settings[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"setting {pair!r} of the sandbox {name} cannot be read; quote its value") from error
    return sandbox_config(settings)


def execution_limits(settings: Mapping[str, Any]) -> Limits:
    """Returns the limits that plain settings describe.

    Raises:
        ConfigError: A limit is not known, not a number, or not above 0.
    """
    try:
        return Limits.model_validate(settings)
    except ValidationError as error:
        raise _sentence(error, Limits, "an execution's limits") from error


def _sentence(error: ValidationError, kind: type[Record], whose: str) -> ConfigError:
    first = error.errors(include_url=False)[0]
    name, value = str(first["loc"][0]), first["input"]
    if first["type"] == "extra_forbidden":
        return unknown_name(f"setting of {whose}", name, kind.model_fields)
    if first["type"] == "enum":
        return unknown_name("capability", str(value), [capability.value for capability in Capability])
    if first["type"] == "greater_than":
        return ConfigError(f"{name} of {whose} is {value}; give a number above {first['ctx']['gt']:g}")
    return ConfigError(f"{name} of {whose} is {value!r}; {first['msg'][0].lower()}{first['msg'][1:]}")
