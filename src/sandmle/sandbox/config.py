"""Which sandbox to use, and how to open it."""

from typing import Annotated, Literal

from pydantic import Field

from sandmle.records import Record
from sandmle.registry import resolve
from sandmle.sandbox.base import Sandbox

_BUILTIN = {
    "forkserver": "sandmle.sandbox.forkserver:ForkserverSandbox",
    "bwrap": "sandmle.sandbox.bwrap:BwrapSandbox",
}
_GROUP = "sandmle.sandboxes"


class ForkserverConfig(Record):
    """The default backend: fast and fully isolated."""

    backend: Literal["forkserver"] = "forkserver"
    workers: int | None = Field(default=None, gt=0)
    """Executions at the same time; None for one per available core."""
    python: str | None = None
    """Interpreter for the code; None for this one."""
    threads: int = Field(default=1, gt=0)
    """Threads of numerical libraries in one execution."""


class BwrapConfig(Record):
    """The cold reference: a fresh interpreter in bubblewrap for every execution."""

    backend: Literal["bwrap"] = "bwrap"
    workers: int | None = Field(default=None, gt=0)
    python: str | None = None
    threads: int = Field(default=1, gt=0)


SandboxConfig = Annotated[ForkserverConfig | BwrapConfig, Field(discriminator="backend")]


def open_sandbox(config: ForkserverConfig | BwrapConfig | None = None) -> Sandbox:
    """Returns a started sandbox. There is no fall-back to a weaker one.

    Args:
        config: The backend and its settings; the forkserver by default.

    Raises:
        SandboxUnavailableError: This machine cannot run that backend; the message names what is missing.
    """
    config = config or ForkserverConfig()
    factory = resolve("sandbox", config.backend, _BUILTIN, _GROUP)
    settings = config.model_dump(exclude={"backend"})
    sandbox: Sandbox = factory(**settings).start()
    return sandbox


def open_backend(name: str, *, workers: int | None = None) -> Sandbox:
    """Returns a started sandbox by its backend's name: a built-in one, a plug-in's, or a dotted path.

    Raises:
        ConfigError: The name is not known.
        SandboxUnavailableError: This machine cannot run that backend.
    """
    sandbox: Sandbox = resolve("sandbox", name, _BUILTIN, _GROUP)(workers=workers).start()
    return sandbox
