"""Renderers: transcripts as token ids that only ever grow, for any chat template that allows it."""

from sandmle.policies.renderers.chat import ChatRenderer
from sandmle.policies.renderers.pieces import ChatPieces, read_template

__all__ = ["ChatPieces", "ChatRenderer", "read_template"]
