"""Scripted engineers: policies of rising skill that need no model and see nothing but the transcript."""

from sandmle.policies.scripted.policy import LADDER, SCRIPTED_NAMES, ScriptedPolicy, open_scripted

__all__ = ["LADDER", "SCRIPTED_NAMES", "ScriptedPolicy", "open_scripted"]
