"""The checks, one a file. ``STANDARD_CHECKS`` is the order in which they are asked: cheap and decisive ones first."""

from sandmle.gate.base import Check
from sandmle.gate.checks import (
    coverage,
    degenerate,
    description,
    determinism,
    disclosure,
    duplicates,
    evaluator,
    groups,
    integrity,
    metadata,
    metric_defined,
    oracle,
    order_leaks,
    reveal,
    runtime,
    scale,
    shift,
    single_column,
    sizes,
    solver,
    thresholds,
    trivial,
)

STANDARD_CHECKS: tuple[Check, ...] = tuple(
    module.CHECK
    for module in (
        integrity,
        sizes,
        evaluator,
        metric_defined,
        degenerate,
        coverage,
        thresholds,
        oracle,
        trivial,
        disclosure,
        reveal,
        description,
        metadata,
        order_leaks,
        duplicates,
        groups,
        single_column,
        scale,
        shift,
        determinism,
        solver,
        runtime,
    )
)

__all__ = ["STANDARD_CHECKS"]
