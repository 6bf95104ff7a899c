"""Synthetic, micro-scale, verifiable competitions for training MLE agents.

Importing this package loads nothing heavy, prints nothing and sets nothing. The parts live in the sub-packages:
``seeds`` -> ``authoring`` -> ``gate`` make tasks; ``env`` -> ``scaffolds`` -> ``rollouts`` -> ``evaluation`` act on
them; ``tasks``, ``grading`` and ``sandbox`` carry both.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
