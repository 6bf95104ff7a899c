"""The MLOps Engineer's evaluator, tried before it is trusted: perfect, sample, shuffled and broken submissions."""

from collections.abc import Mapping

import numpy as np

from sandmle.authoring.roles.draws import Draw
from sandmle.authoring.roles.outputs import Evaluator, MetricChoice, TaskIdea
from sandmle.authoring.roles.reading import Complaint
from sandmle.authoring.roles.scoring import Scoring, best_constant, same_everywhere
from sandmle.errors import BundleError, ConfigError
from sandmle.grading import write_table
from sandmle.grading.custom import ROW, EvaluatorFault, EvaluatorRunner, custom_metric
from sandmle.grading.metrics import CUSTOM, get_metric
from sandmle.records import Direction
from sandmle.sandbox.base import Sandbox

_CLEARLY = 1e-9


def choose(
    choice: MetricChoice | Evaluator, idea: TaskIdea, direction: Direction, draw: Draw, sandbox: Sandbox
) -> Scoring:
    """Returns how a task is scored, after trying it on the draw's hidden rows.

    Args:
        choice: A metric's name, or a script.
        idea: The task.
        direction: The DNA's; it counts for scripts, and a named metric has its own.
        draw: Rows to try it on.
        sandbox: Where the script runs.

    Raises:
        Complaint: The metric does not fit, or the script does not tell good from bad.
        SandboxError: The sandbox itself failed.
    """
    if isinstance(choice, Evaluator):
        return _tried(choice, idea, direction, draw, sandbox)
    try:
        metric = get_metric(choice.metric)
        scoring = Scoring(metric.name, metric.direction, choice.params)
        scoring.key(idea, {name: draw.test[name] for name in idea.target.columns})
    except (ConfigError, BundleError) as error:
        raise Complaint("evaluator", f"the metric {choice.metric!r} does not fit the task: {error}") from error
    return scoring


def _tried(choice: Evaluator, idea: TaskIdea, direction: Direction, draw: Draw, sandbox: Sandbox) -> Scoring:
    runner = EvaluatorRunner(choice.source, idea.target, sandbox)
    answers = {name: draw.test[name] for name in idea.target.columns}
    perfect = _number(runner, answers, answers, "the answers themselves")
    params = {"title": choice.title, "words": choice.words, "formula": choice.formula, "best": perfect}
    metric = custom_metric(choice.source, idea.target, direction, params, sandbox)
    scoring = Scoring(CUSTOM, direction, params, metric, choice.source)
    n_rows = len(next(iter(answers.values())))
    constant = same_everywhere(best_constant(idea, scoring, draw.train), n_rows)
    order = np.random.default_rng(0).permutation(n_rows).tolist()
    shuffled = {name: [cells[row] for row in order] for name, cells in answers.items()}
    for cells, words in ((constant, "a constant"), (shuffled, "shuffled answers")):
        found = _number(runner, cells, answers, words)
        if not direction.gain(perfect, found) > _CLEARLY:
            raise Complaint(
                "evaluator",
                f"the evaluator gives {words} {found:.6g} and the answers themselves {perfect:.6g}, "
                f"though the metric is to {direction.value}",
            )
    _refuse_leniency(runner, answers)
    return scoring


def _number(
    runner: EvaluatorRunner,
    cells: Mapping[str, list[str]],
    answers: Mapping[str, list[str]],
    words: str,
) -> float:
    try:
        return runner.grade_files(_file(cells), _file(answers))[0]
    except EvaluatorFault as error:
        raise Complaint("evaluator", f"on {words}: {error}", f"On {words}: {error}\n{error.stderr[-1500:]}") from error


def _refuse_leniency(runner: EvaluatorRunner, answers: Mapping[str, list[str]]) -> None:
    """Sees that a submission of half the rows gets no number."""
    half = {name: cells[: len(cells) // 2] for name, cells in answers.items()}
    try:
        found = runner.grade_files(_file(half), _file(answers))[0]
    except EvaluatorFault:
        return
    raise Complaint(
        "evaluator", f"the evaluator gives a submission that lacks half of the rows {found:.6g}; it must raise an error"
    )


def _file(cells: Mapping[str, list[str]]) -> bytes:
    n_rows = len(next(iter(cells.values())))
    return write_table({ROW: list(range(n_rows)), **cells})
