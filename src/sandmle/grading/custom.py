"""A task's own evaluator as a metric: ``grade(submission, answers) -> float`` in ``private/evaluator.py``.

The script runs in the sandbox and nowhere else, with the graded rows and nothing beside them. Its direction is the
task's field, its bounds are measured by the author; the script's word counts for nothing but the number it returns.
"""

import hashlib
import json
import math
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from sandmle.errors import ConfigError, GraderError
from sandmle.grading.metrics import CUSTOM
from sandmle.grading.metrics.base import Calculation, Floats, Metric, Params, Truth, Values
from sandmle.grading.table import write_table
from sandmle.records import Direction, ExecStatus, Limits, PredictionKind, TargetSpec
from sandmle.sandbox.base import ExecRequest, Sandbox

EVALUATOR_FILE = "private/evaluator.py"
N_BLOCKS = 40
"""Blocks of rows that are left out in turn for the standard error."""
# CPU time is what a script uses; wall-clock time also grows with what else the machine does.
_LIMITS = Limits(wall_s=300.0, cpu_s=30.0, memory_mb=1024, output_bytes=100_000)
_MOST_REMEMBERED = 256
_TEXT_KINDS = frozenset(PredictionKind) - {
    PredictionKind.PROBABILITY,
    PredictionKind.CLASS_PROBABILITIES,
    PredictionKind.LABEL_PROBABILITIES,
    PredictionKind.VALUES,
}
ROW = "row"
"""Column beside the target's in the two tables that a script is given: the number of the row."""


class EvaluatorFault(GraderError):
    """The evaluator script itself failed, or returned no finite number.

    Attributes:
        stderr: What it wrote, for its author.
    """

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


@dataclass
class EvaluatorRunner:
    """Runs one evaluator script; equal questions are asked once.

    Attributes:
        source: The script.
        target: The task's target.
        sandbox: Where it runs; None opens the default one at the first use and closes it with this object.
    """

    source: str
    target: TargetSpec
    sandbox: Sandbox | None = None
    _own: list[Sandbox] = field(default_factory=list, repr=False)
    _known: dict[bytes, list[float]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out what another process cannot use."""
        return {"source": self.source, "target": self.target, "sandbox": None, "_own": [], "_known": {}}

    def score(self, truth: Truth, prediction: Values, params: Params) -> float:
        """Returns the script's number."""
        return self._scores(truth, prediction, 0)[0]

    def spread(self, truth: Truth, prediction: Values, params: Params) -> Floats:
        """Returns what each block of rows moves the score, by the delete-a-group jackknife # [n_blocks]."""
        n_blocks = min(N_BLOCKS, len(truth))
        without = np.array(self._scores(truth, prediction, n_blocks)[1:])
        return np.asarray((n_blocks - 1) * (without.mean() - without))

    def grade_files(self, submission: bytes, answers: bytes, n_blocks: int = 0) -> list[float]:
        """Returns the script's number for two tables, and those without each block of rows.

        Raises:
            EvaluatorFault: The script failed, or a number is not finite.
            SandboxError: The sandbox itself failed.
        """
        key = hashlib.sha256(b"%d|%d|" % (n_blocks, len(submission)) + submission + answers).digest()
        if key not in self._known:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = self._run(submission, answers, n_blocks)
        return self._known[key]

    def _scores(self, truth: Truth, prediction: Values, n_blocks: int) -> list[float]:
        files = [
            write_table({ROW: np.arange(len(values)), **_cells(values, self.target)})
            for values in (prediction, truth.values)
        ]
        return self.grade_files(files[0], files[1], n_blocks)

    def _run(self, submission: bytes, answers: bytes, n_blocks: int) -> list[float]:
        texts = list(self.target.columns) if self.target.kind in _TEXT_KINDS else []
        task = {"text_columns": texts, "n_blocks": n_blocks}
        driver = resources.files("sandmle.grading").joinpath("evaluator_script.py").read_text()
        with tempfile.TemporaryDirectory(prefix="sandmle-evaluator-") as folder:
            workspace = Path(folder)
            for name, data in (
                ("evaluator.py", self.source.encode()),
                ("submission.csv", submission),
                ("answers.csv", answers),
            ):
                (workspace / name).write_bytes(data)
            result = self._opened().execute(
                ExecRequest(
                    code=f"TASK = {task!r}\n{driver}", workspace=workspace, limits=_LIMITS, collect=("score.json",)
                )
            )
        if result.status is not ExecStatus.OK:
            raise EvaluatorFault(f"the evaluator ended with {result.status.value}", result.stderr or result.detail)
        return _read_scores(result.file("score.json"), n_blocks + 1)

    def _opened(self) -> Sandbox:
        if self.sandbox is not None:
            return self.sandbox
        if not self._own:
            from sandmle.sandbox import ForkserverConfig, open_sandbox

            opened = open_sandbox(ForkserverConfig(workers=1))
            self._own.append(opened)
            weakref.finalize(self, opened.close)
        return self._own[0]


def _read_scores(data: bytes | None, n_wanted: int) -> list[float]:
    try:
        found = json.loads(data or b"")
    except (ValueError, RecursionError) as error:
        raise EvaluatorFault("the evaluator wrote no score") from error
    if not isinstance(found, list) or len(found) != n_wanted:
        raise EvaluatorFault("the evaluator wrote no score")
    numbers = [float(each) for each in found if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) < n_wanted or not all(map(math.isfinite, numbers)):
        raise EvaluatorFault("the evaluator returned no finite number")
    return numbers


def custom_metric(
    source: str,
    target: TargetSpec,
    direction: Direction,
    params: Mapping[str, Any],
    sandbox: Sandbox | None = None,
) -> Metric:
    """Returns a task's own evaluator as a metric.

    Args:
        source: The script.
        target: The task's target.
        direction: Which way its number is better, as measured by the author.
        params: ``title``, ``words``, ``formula`` and ``best``, the number of the answers themselves.
        sandbox: Where the script runs; None for one of its own.

    Raises:
        ConfigError: A parameter is missing.
    """
    missing = [name for name in ("title", "words", "best") if name not in params]
    if missing:
        raise ConfigError(f"metric 'custom' needs the parameter {missing[0]!r}; name it in metric_params")
    runner = EvaluatorRunner(source, target, sandbox)
    return Metric(
        name=CUSTOM,
        title=str(params["title"]),
        direction=direction,
        kinds=tuple(PredictionKind),
        best=float(params["best"]),
        calculation=Calculation(runner.score, runner.spread),
        words=str(params["words"]),
        formula=str(params.get("formula", "")),
        rows_sum_to_one=target.kind is PredictionKind.CLASS_PROBABILITIES,
        numbers="unit" if target.kind in (PredictionKind.PROBABILITY, PredictionKind.LABEL_PROBABILITIES) else "finite",
        defaults={"title": "", "words": "", "formula": "", "best": 0.0},
    )


def _cells(values: Values, target: TargetSpec) -> dict[str, Sequence[Any] | np.ndarray]:
    """Returns parsed values as the cells of a file, by column."""
    if target.kind is PredictionKind.PROBABILITY:
        return {target.columns[0]: values}
    if target.kind not in _TEXT_KINDS:
        return {name: values[:, at] for at, name in enumerate(target.columns[: values.shape[1]])}
    return {target.columns[0]: [_text(value, target) for value in values]}


def _text(value: Any, target: TargetSpec) -> str:
    if target.kind is PredictionKind.LABEL:
        return target.labels[int(value)]
    if target.kind is PredictionKind.MASK:
        return " ".join(f"{int(start) + 1} {int(length)}" for start, length in value)
    if target.kind is PredictionKind.BOXES:
        return " ".join(
            f"{label} {confidence} {left} {top} {right - left} {bottom - top}"
            for label, confidence, (left, top, right, bottom) in zip(
                value.labels, value.confidence, value.corners, strict=True
            )
        )
    return value if isinstance(value, str) else " ".join(map(str, value))
