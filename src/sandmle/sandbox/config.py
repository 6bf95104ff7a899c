"""Which sandbox to use, and how to open it."""

from typing import Annotated, Literal

from pydantic import Field

from sandmle.errors import SandboxUnavailableError
from sandmle.records import Record
from sandmle.registry import resolve
from sandmle.sandbox.base import Capability, Sandbox
from sandmle.sandbox.libraries import DEFAULT_LIBRARIES

BACKENDS = {
    "forkserver": "sandmle.sandbox.forkserver:ForkserverSandbox",
    "bwrap": "sandmle.sandbox.bwrap:BwrapSandbox",
    "restricted": "sandmle.sandbox.restricted:RestrictedSandbox",
    "docker": "sandmle.sandbox.container:DockerSandbox",
    "podman": "sandmle.sandbox.container:PodmanSandbox",
}
"""Where the built-in backends are, the default one first."""
DEFAULT_BACKEND = "forkserver"
PLUGIN_GROUP = "sandmle.sandboxes"


class ForkserverConfig(Record):
    """The default backend: fast and fully isolated."""

    backend: Literal["forkserver"] = "forkserver"
    workers: int | None = Field(default=None, gt=0)
    """Executions at the same time; None for one per available core."""
    python: str | None = None
    """Interpreter for the code; None for this one."""
    threads: int = Field(default=1, gt=0)
    """Threads of numerical libraries in one execution."""
    libraries: str = DEFAULT_LIBRARIES
    """What the server imports; see ``sandmle.sandbox.libraries``."""
    require: tuple[Capability, ...] = ()
    """What the backend must hold on this machine; if it does not, it is not started."""


class BwrapConfig(Record):
    """The cold reference: a fresh interpreter in bubblewrap for every execution."""

    backend: Literal["bwrap"] = "bwrap"
    workers: int | None = Field(default=None, gt=0)
    python: str | None = None
    threads: int = Field(default=1, gt=0)
    require: tuple[Capability, ...] = ()


class RestrictedConfig(Record):
    """The weaker backend for machines without root and user namespaces; hidden answers must be kept elsewhere."""

    backend: Literal["restricted"] = "restricted"
    workers: int | None = Field(default=None, gt=0)
    python: str | None = None
    threads: int = Field(default=1, gt=0)
    libraries: str = DEFAULT_LIBRARIES
    require: tuple[Capability, ...] = ()


class ContainerConfig(Record):
    """One long-lived container, which holds a warm server."""

    backend: Literal["docker", "podman"]
    workers: int | None = Field(default=None, gt=0)
    image: str = "sandmle-sandbox"
    """Built from ``docker/sandbox/Dockerfile``."""
    memory_mb: int | None = Field(default=None, gt=0)
    """Memory of the whole container; None for 2560 for each worker."""
    disk_mb: int = Field(default=1024, gt=0)
    processes: int = Field(default=1024, gt=0)
    require: tuple[Capability, ...] = ()


AnyConfig = ForkserverConfig | BwrapConfig | RestrictedConfig | ContainerConfig
SandboxConfig = Annotated[AnyConfig, Field(discriminator="backend")]


def make_sandbox(config: AnyConfig) -> Sandbox:
    """Returns a sandbox that is not started: nothing of it runs yet.

    Raises:
        ConfigError: A setting has no meaning, such as a set of libraries that does not exist.
    """
    factory = resolve("sandbox", config.backend, BACKENDS, PLUGIN_GROUP)
    sandbox: Sandbox = factory(**config.model_dump(exclude={"backend", "require"}))
    return sandbox


def open_sandbox(config: AnyConfig | None = None) -> Sandbox:
    """Returns a started sandbox. There is no fall-back to a weaker one.

    Args:
        config: The backend and its settings; the forkserver by default.

    Raises:
        SandboxUnavailableError: This machine cannot run that backend, or it does not hold all that ``require`` names;
            the message names what is missing.
    """
    config = config or ForkserverConfig()
    sandbox = make_sandbox(config).start()
    missing = [capability.value for capability in config.require if capability not in sandbox.capabilities]
    if missing:
        sandbox.close()
        raise SandboxUnavailableError(
            f"the {sandbox.name} sandbox does not hold {', '.join(missing)} on this machine, which the configuration "
            "requires; `sandmle doctor` tells what it needs"
        )
    return sandbox
