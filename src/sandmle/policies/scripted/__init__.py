"""Scripted engineers: policies of rising skill that need no model and see nothing but the transcript."""

from sandmle.policies.scripted.policy import SCRIPTED_NAMES, ScriptedPolicy, open_scripted

__all__ = ["SCRIPTED_NAMES", "ScriptedPolicy", "open_scripted"]
