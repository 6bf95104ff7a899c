"""What authoring with a model costs beside the model's own time."""

from sandmle.authoring.roles.bench.measure import BenchReport, BenchRow, run_bench

__all__ = ["BenchReport", "BenchRow", "run_bench"]
