"""What an execution costs: every way to run a script that this machine has, side by side in one run."""

from sandmle.sandbox.bench.measure import BenchReport, BenchRow, run_bench

__all__ = ["BenchReport", "BenchRow", "run_bench"]
