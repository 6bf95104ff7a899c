"""Known faults, put into sound tasks on purpose: how often the gate finds them, and how often it cries without one."""

from sandmle.gate.faults.base import Fault, Injection
from sandmle.gate.faults.catalogue import FAULTS
from sandmle.gate.faults.measure import STRENGTHS, Trial, summarize_trials, try_faults

__all__ = ["FAULTS", "STRENGTHS", "Fault", "Injection", "Trial", "summarize_trials", "try_faults"]
