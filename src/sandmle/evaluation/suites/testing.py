"""What every suite must do, as checks that third parties can run on their own: ``check_suite(suite)``."""

from sandmle.evaluation.suites.base import Suite
from sandmle.records import GradeStatus


def check_suite(suite: Suite) -> None:
    """Passes when a suite keeps the contract; it needs data of which at least one task can be used.

    Raises:
        AssertionError: It does not; the message says what is wrong.
    """
    tasks = suite.load()
    _require(isinstance(suite, Suite), "it is no Suite: a member is missing")
    _require(bool(tasks.bundles), "no task can be used")
    _require(not set(tasks.bundles) & set(tasks.missing), "a task is both there and missing")
    again = suite.load()
    hashes = {name: bundle.spec.task_hash for name, bundle in tasks.bundles.items()}
    _require(hashes == {name: bundle.spec.task_hash for name, bundle in again.bundles.items()}, "loading twice differs")
    for task_id, sentence in tasks.missing.items():
        _require("\n" not in sentence and bool(sentence), f"{task_id}: no single sentence says why it is missing")
    for task_id, bundle in tasks.bundles.items():
        _require(bundle.task_id == task_id, f"{task_id}: the bundle calls itself {bundle.task_id}")
        _require(bool(bundle.description().strip()), f"{task_id}: there is no description")
        paths = bundle.public_paths()
        _require(bool(paths), f"{task_id}: agents are given no file")
        answers = bundle.answers_path.resolve()
        seen = {(bundle.public_dir / path).resolve() for path in paths}
        _require(answers not in seen, f"{task_id}: the answers are among the public files")
        grader = suite.open_grader(bundle)
        _require(grader.grade(None).status is GradeStatus.MISSING, f"{task_id}: no submission is not told as missing")
        bad = grader.grade(b"no,such,columns\n1,2,3\n")
        _require(not bad.is_valid and not bad.status.is_ours, f"{task_id}: a foreign table is not refused")
        _require(bad.score is None, f"{task_id}: a refused table has a score")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)
