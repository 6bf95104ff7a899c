"""Scripted engineers under any scaffold: they also answer the requests of a tree search, and JSON actions."""

from sandmle.policies.proposer.policy import ProposerPolicy, open_proposer

__all__ = ["ProposerPolicy", "open_proposer"]
