"""Sandboxes: run hostile code, say what it did, let nothing out."""

from sandmle.sandbox.base import INPUT_DIR, Capability, ExecRequest, Sandbox
from sandmle.sandbox.config import (
    BwrapConfig,
    ContainerConfig,
    ForkserverConfig,
    RestrictedConfig,
    SandboxConfig,
    open_sandbox,
)
from sandmle.sandbox.settings import check_backend, execution_limits, open_backend, sandbox_config

__all__ = [
    "INPUT_DIR",
    "BwrapConfig",
    "Capability",
    "ContainerConfig",
    "ExecRequest",
    "ForkserverConfig",
    "RestrictedConfig",
    "Sandbox",
    "SandboxConfig",
    "check_backend",
    "execution_limits",
    "open_backend",
    "open_sandbox",
    "sandbox_config",
]
