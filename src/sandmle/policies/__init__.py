"""Policies: a transcript in, one reply out. Opened by a name such as ``scripted:linear`` or ``chat:MODEL``."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sandmle import registry
from sandmle.errors import ConfigError
from sandmle.policies.base import Policy, SamplingParams
from sandmle.policies.options import PolicyOptions

BUILTIN: Mapping[str, str] = MappingProxyType(
    {
        "canned": "sandmle.policies.canned:open_canned",
        "chat": "sandmle.policies.chat:open_chat",
        "scripted": "sandmle.policies:open_scripted",
    }
)
"""Opener of each family: ``open(argument, options)``."""
ENTRY_POINTS = "sandmle.policies"

__all__ = ["BUILTIN", "Policy", "PolicyOptions", "SamplingParams", "open_policy"]


def open_policy(spec: str, **options: Any) -> Policy:
    """Returns a policy by name.

    Args:
        spec: ``family:argument``: ``scripted:NAME``, ``chat:MODEL``, ``canned:FILE``, a family that another package
            adds under the entry-point group ``sandmle.policies``, or ``package.module:function[:argument]`` for an
            opener of one's own.
        **options: Fields of :class:`PolicyOptions`.

    Raises:
        ConfigError: The name or an option is unknown, or the policy cannot be opened.
    """
    family, colon, argument = spec.partition(":")
    unknown = sorted(set(options) - set(PolicyOptions.model_fields))
    if unknown:
        raise ConfigError(f"policy {spec} has no option {unknown[0]!r}; known: {', '.join(PolicyOptions.model_fields)}")
    settings = PolicyOptions(**options)
    if "." in family:
        module, attribute, *rest = [*spec.split(":", 2), ""]
        opener = registry.resolve("policy", f"{module}:{attribute}", BUILTIN, ENTRY_POINTS)
        argument = rest[0]
    else:
        opener = registry.resolve("policy", family, BUILTIN, ENTRY_POINTS)
        if not colon or not argument:
            raise ConfigError(f"policy {spec!r} lacks what comes after the colon; write {family}:NAME")
    try:
        policy: Policy = opener(argument, settings)
    except TypeError as error:
        raise ConfigError(
            f"policy {spec!r} cannot be opened: {error}; an opener takes what stands behind the name, and PolicyOptions"
        ) from error
    return policy


def open_scripted(argument: str, options: PolicyOptions) -> Policy:
    """Returns a scripted engineer for any scaffold; in a transcript it writes in the grammar of the options."""
    from sandmle.policies import proposer

    policy: Policy = proposer.open_proposer(argument, options.grammar)
    return policy
