"""The gate: judges any bundle, generated or hand-made, with no model. ``run_gate`` is the way in."""

from sandmle.gate.base import Check, Finding, GateContext, Regenerate
from sandmle.gate.checks import STANDARD_CHECKS
from sandmle.gate.gate import run_gate

__all__ = ["STANDARD_CHECKS", "Check", "Finding", "GateContext", "Regenerate", "run_gate"]
