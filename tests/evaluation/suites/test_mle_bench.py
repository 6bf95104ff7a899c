"""The MLE-bench suites on small data in MLE-bench's own layout."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import ConfigError
from sandmle.evaluation.suites import SuiteOptions, open_suite
from sandmle.evaluation.suites.boards import place_thresholds
from sandmle.evaluation.suites.mle_bench import MleBenchLiteSuite, MleBenchSuite
from sandmle.evaluation.suites.mle_bench_reports import _submission, read_submissions
from sandmle.evaluation.suites.official import DIFFERENCE
from sandmle.evaluation.suites.rules import builtin_rules
from sandmle.evaluation.suites.testing import check_suite
from sandmle.formats.mle_bench import MleBench
from sandmle.formats.transfer import export_tasks
from sandmle.grading import Grader
from sandmle.grading.table import DEFAULT_CAPS
from sandmle.records import GradeStatus, Medal
from tests.bundles import draft, saved
from tests.evaluation.suites.lite import Made, csv, many_classes, write_prepared

CACTUS, PIZZA, TAXI = "aerial-cactus-identification", "random-acts-of-pizza", "new-york-city-taxi-fare-prediction"
RULES = builtin_rules("mle_bench_lite")
FAKE = "tests.env.fakes:FakeSandbox"


def prepare(root: Path, competition: str) -> Made:
    made = Made(competition, many_classes())
    write_prepared(root, made, RULES[competition].answers, RULES[competition].sample)
    (root / competition / "prepared/public/oracle.csv").write_bytes(csv(made.table(made.truth)))
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for competition in (CACTUS, PIZZA):
        prepare(tmp_path / "data", competition)
    return tmp_path / "data"


def options(data: Path, *competitions: str, **more: Any) -> SuiteOptions:
    return SuiteOptions(data=data, competitions=competitions, **more)


def invoke(data: Path, tmp_path: Path, *more: str) -> Any:
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps(["```python\nsubmit oracle.csv\n```", "SUBMIT"]))
    args = ["eval", "--suite", "mle-bench-lite", "--data", str(data), "--policy", f"canned:{replies}"]
    args += ["--out", str(tmp_path / "run"), "--grammar", "fenced", "--sandbox", FAKE, *more]
    return CliRunner().invoke(app, args)


def strict(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(path.read_text(), parse_constant=refuse)


def test_the_suite_keeps_the_contract(data: Path) -> None:
    check_suite(MleBenchLiteSuite(options(data, CACTUS, PIZZA, TAXI)))


def test_a_run_writes_mle_benchs_reports_and_goes_on_when_data_come(data: Path, tmp_path: Path) -> None:
    ids = [argument for each in (CACTUS, PIZZA, TAXI) for argument in ("--competition", each)]
    first = invoke(data, tmp_path, *ids, "--attempts", "2")
    assert first.exit_code == 1, first.output
    assert f"run `mlebench prepare -c {TAXI} --data-dir {data}`" in first.stderr
    assert "3 competitions, not the 22" in first.stdout
    assert f"{PIZZA}: LEAK" in first.stdout
    assert "4/6" in first.stdout
    prepare(data, TAXI)
    second = invoke(data, tmp_path, *ids, "--attempts", "2", "--resume", "--json")
    assert second.exit_code == 0, second.output
    folder = tmp_path / "run/mle-bench/policy-0/attempt-1"
    lines = read_submissions(folder / "submission.jsonl")
    assert [line.competition_id for line in lines] == sorted([CACTUS, PIZZA, TAXI])
    assert all(line.submission_path is not None and line.submission_path.is_file() for line in lines)
    report = strict(folder / "grading_report.json")
    assert report["total_runs"] == report["total_valid_submissions"] == report["total_gold_medals"] == 3
    taxi = next(each for each in report["competition_reports"] if each["competition_id"] == TAXI)
    assert taxi["score"] == 0.0
    assert taxi["is_lower_better"] is True
    assert taxi["gold_threshold"] == 2.83377
    assert taxi["submission_exists"] is taxi["valid_submission"] is taxi["above_median"] is True
    config = strict(tmp_path / "run/run.json")
    assert config["episode"]["feedback"] == "none"
    assert config["episode"]["max_turns"] == 30


def test_without_a_list_the_suite_has_all_22(data: Path) -> None:
    tasks = MleBenchLiteSuite(options(data)).load()
    assert len(tasks.bundles) == 2
    assert len(tasks.missing) == 20
    assert tasks.notes == ()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("private/test.csv", "private/test.csv is missing"),
        ("public/sample_submission.csv", "sample_submission.csv is missing"),
        ("public/description.md", "description.md is missing"),
    ],
)
def test_half_prepared_competitions_are_named_with_the_command(data: Path, path: str, words: str) -> None:
    (data / CACTUS / "prepared" / path).unlink()
    sentence = MleBenchLiteSuite(options(data, CACTUS, PIZZA)).load().missing[CACTUS]
    assert words in sentence
    assert f"run `mlebench prepare -c {CACTUS}" in sentence


def test_answers_without_rows_stop_no_other_competition(data: Path) -> None:
    file = data / CACTUS / "prepared" / "private" / "test.csv"
    file.write_text(file.read_text().splitlines()[0] + "\n")
    tasks = MleBenchLiteSuite(options(data, CACTUS, PIZZA)).load()
    assert "holds no answers; prepare the competition again" in tasks.missing[CACTUS]
    assert PIZZA in tasks.bundles


def test_missing_data_unknown_ids_and_lists_are_one_sentence(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mlebench prepare --lite --data-dir"):
        MleBenchLiteSuite(options(tmp_path / "nowhere")).load()
    with pytest.raises(ConfigError, match=f"did you mean '{CACTUS}'"):
        MleBenchLiteSuite(options(data, "aerial-cactus-identificatoin")).load()
    with pytest.raises(ConfigError, match="name competitions with --competition"):
        MleBenchSuite(options(data)).load()
    with pytest.raises(ConfigError, match="no competition of mle-bench-lite can be used"):
        MleBenchLiteSuite(options(data, TAXI)).load()
    with pytest.raises(ConfigError, match="takes no --not-in"):
        open_suite("mle-bench-lite", options(data, not_in=(data,)))


def test_a_users_leaderboard_gives_medals_by_place(data: Path, tmp_path: Path) -> None:
    boards = tmp_path / "boards"
    (boards / CACTUS).mkdir(parents=True)
    scores = [1 - place / 1000 for place in range(250)]
    text = "teamId,score\n" + "".join(f"{place},{score}\n" for place, score in enumerate(scores))
    (boards / CACTUS / "leaderboard.csv").write_text(text)
    (boards / f"{PIZZA}.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    tasks = MleBenchLiteSuite(options(data, CACTUS, PIZZA, leaderboards=boards)).load()
    marks = tasks.bundles[CACTUS].spec.thresholds
    assert (marks.gold.score, marks.silver.score, marks.bronze.score) == (scores[9], scores[49], scores[99])
    assert "git lfs pull" in tasks.missing[PIZZA]


def test_g38_scores_are_rounded_before_medals_as_mle_bench_does(data: Path) -> None:
    suite = MleBenchLiteSuite(options(data, CACTUS))
    bundle = suite.load().bundles[CACTUS]
    made = Made(CACTUS, many_classes())
    own = suite.open_grader(bundle)
    submission = csv(made.table(made.noisy))
    score = own.grade(submission).score
    assert score is not None
    border = round(score, 5) if round(score, 5) > score else round(score, 5) + 1e-5
    marks = place_thresholds(median=0.1, bronze=0.2, silver=0.3, gold=border)
    changed = type(bundle)(**{**vars(bundle), "spec": bundle.spec.replace(thresholds=marks)})
    rounded = Grader(changed, key=own.key, decimals=5).grade(submission)
    exact = Grader(changed, key=own.key).grade(submission)
    assert rounded.score == exact.score == score
    assert exact.medal is Medal.SILVER
    assert rounded.medal is (Medal.GOLD if border == round(score, 5) else Medal.SILVER)


def test_rules_of_the_user_open_further_competitions(data: Path, tmp_path: Path) -> None:
    other = "nfl-player-contact-detection"
    write_prepared(data, Made(CACTUS, many_classes()), "private/test.csv", "public/sample_submission.csv")
    (data / CACTUS).rename(data / other)
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        f"- {{id: {other}, answers: private/test.csv, sample: public/sample_submission.csv, id_column: id,"
        " kind: probability, columns: [has_cactus], metric: roc_auc}\n"
    )
    assert "no grading rule is known" in str(MleBenchSuite(options(data, other, PIZZA)).load().missing)
    suite = MleBenchSuite(options(data, other, rules=rules))
    check_suite(suite)
    rules.write_text("- {id: x}\n")
    with pytest.raises(ConfigError, match="rule 1: answers"):
        suite.load()
    rules.write_text("a: 1\n")
    with pytest.raises(ConfigError, match="no list of rules"):
        suite.load()


def test_submission_lists_skip_comments_and_name_broken_lines(tmp_path: Path) -> None:
    path = tmp_path / "submission.jsonl"
    path.write_text(
        '# a comment\n// another\n\n{"competition_id": "a", "submission_path": null}\n'
        '{"competition_id": "b", "submission_path": "/x/b.csv", "logs_path": "l"}\n'
    )
    lines = read_submissions(path)
    assert [(line.competition_id, line.submission_path) for line in lines] == [("a", None), ("b", Path("/x/b.csv"))]
    path.write_text('{"competition_id": "a"}\n')
    with pytest.raises(ConfigError, match="line 1"):
        read_submissions(path)
    with pytest.raises(ConfigError, match="cannot read the submissions"):
        read_submissions(tmp_path / "none.jsonl")


OFFICIAL = {
    "__init__.py": "",
    "registry.py": """
class Registry:
    def set_data_dir(self, path):
        return self
    def get_competition(self, name):
        return name
registry = Registry()
""",
    "grade.py": """
from types import SimpleNamespace
def grade_csv(path, competition):
    text = path.read_text()
    if "boom" in text:
        raise AssertionError("numpy float")
    score = None if "NaN" in text else 0.5
    return SimpleNamespace(score=score, gold_medal=False, silver_medal=False, bronze_medal=False, above_median=False)
""",
}


def test_the_official_grader_decides_and_differences_are_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = MleBenchLiteSuite(options(data, CACTUS, grader="official"))
    bundle = suite.load().bundles[CACTUS]
    with pytest.raises(ConfigError, match="needs the package mlebench"):
        suite.open_grader(bundle)
    package = tmp_path / "site/mlebench"
    package.mkdir(parents=True)
    for name, text in OFFICIAL.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(str(package.parent))
    for name in ("mlebench", "mlebench.registry", "mlebench.grade"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    grader = suite.open_grader(bundle)
    made = Made(CACTUS, many_classes())
    same = grader.grade(csv(made.table(made.sample)))
    assert (same.score, same.medal) == (0.5, Medal.NONE)
    assert DIFFERENCE not in same.message
    other = grader.grade(csv(made.table(made.truth)))
    assert (other.score, other.medal) == (0.5, Medal.NONE)
    assert DIFFERENCE in other.message
    assert grader.grade(None).status is GradeStatus.MISSING
    refused = grader.grade(b"id,has_cactus\nNaN,1\n")
    assert not refused.is_valid
    assert refused.status is GradeStatus.BAD_IDS
    for name in ("mlebench", "mlebench.registry", "mlebench.grade"):
        sys.modules.pop(name, None)


def test_g44_a_list_of_submissions_is_graded_whatever_is_wrong_with_one(data: Path, tmp_path: Path) -> None:
    made = Made(CACTUS, many_classes())
    good = tmp_path / "good.csv"
    good.write_bytes(csv(made.table(made.truth)))
    lines = [
        {"competition_id": CACTUS, "submission_path": str(good)},
        {"competition_id": TAXI, "submission_path": str(good)},
        {"competition_id": PIZZA, "submission_path": str(good)},
        {"competition_id": PIZZA, "submission_path": None},
    ]
    listed = tmp_path / "submission.jsonl"
    listed.write_text("# mine\n" + "".join(json.dumps(line) + "\n" for line in lines))
    args = ["eval", "--suite", "mle-bench-lite", "--data", str(data), "--submissions", str(listed)]
    result = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "graded")])
    assert result.exit_code == 1, result.output
    assert f"not graded: competition {TAXI} is not prepared" in result.stderr
    report = strict(tmp_path / "graded/grading_report.json")
    assert [each["score"] for each in report["competition_reports"]] == [1.0, None, None]
    assert (report["total_runs"], report["total_runs_with_submissions"], report["total_gold_medals"]) == (3, 2, 1)
    assert [each["competition_id"] for each in report["not_graded"]] == [TAXI]
    neither = CliRunner().invoke(app, [*args[:5], "--out", str(tmp_path / "x")])
    assert "--policy" in str(neither.exception)


def test_a_synthetic_task_exported_to_mle_benchs_layout_scores_the_same(tmp_path: Path) -> None:
    bundle = saved(draft("binary", n_private=1000), tmp_path / "tasks")
    assert not [each.error for each in export_tasks(bundle.root, MleBench(), tmp_path / "out") if each.error]
    rules = tmp_path / "rules.yaml"
    column = bundle.spec.target.columns[0]
    rules.write_text(
        f"- {{id: {bundle.task_id}, answers: private/answers.csv, sample: public/sample_submission.csv,"
        f" id_column: {bundle.spec.id_column}, kind: probability, columns: [{column}], metric: {bundle.spec.metric}}}\n"
    )
    boards = tmp_path / "out/mlebench/competitions"
    given = options(tmp_path / "out/data", bundle.task_id, rules=rules, leaderboards=boards)
    suite = MleBenchSuite(given)
    check_suite(suite)
    exported = suite.load().bundles[bundle.task_id]
    submission = bundle.read("private/oracle.csv")
    theirs, ours = suite.open_grader(exported).grade(submission), Grader(bundle).grade(submission)
    assert theirs.medal is ours.medal
    assert exported.spec.thresholds.gold.score == pytest.approx(bundle.spec.thresholds.gold.score, abs=1e-5)
    assert theirs.score == pytest.approx(ours.score, abs=0.05)  # MLE-bench has no public rows: all of them count


RULE = "id: OTHER, answers: private/test.csv, sample: public/sample_submission.csv, kind: probability, metric: roc_auc"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (f"- {{{RULE}, columns: [a, a]}}", "rule 1: .*a"),
        (f"- {{{RULE}, sum_tolerance: -1}}", "rule 1: sum_tolerance"),
        (f"- {{{RULE}, low: 2, high: 1}}", r"rule 1: low \(2\) is above high"),
        (f"- {{{RULE}, answer_columns: [x, x]}}", "rule 1: column x is named twice"),
        (f"- {{{RULE}, labels: ['0', '0']}}", "rule 1: label 0 is named twice"),
        (f"- {{{RULE}, max_items: 0}}", "rule 1: max_items"),
        (f"- {{{RULE}, metric_params: {{a: &a [1], b: *a}}}}", "is not YAML text"),
        ("[" * 100_000, "is not YAML text"),
        ("".join(f"{' ' * depth}-\n" for depth in range(300)), "is not YAML text"),
        ("- {id: 2001-99-99}", "is not YAML text"),
        ("- {id: " + "9" * 5000 + "}", "is not YAML text"),
        ("#" * (5 << 20), "more than 4 MiB"),
        (f"- {{{RULE}}}\n- {{{RULE}}}", "rule 2: there is a rule for OTHER already"),
        (f"- {{{RULE}}}".replace("OTHER", "a/b"), "rule 1: id"),
        (f"- {{{RULE}}}".replace("OTHER", "''"), "rule 1: id"),
        (f"- {{{RULE}}}".replace("private/test.csv", "../../secrets.csv"), "rule 1: answers: is no path below"),
        (f"- {{{RULE}}}".replace("roc_auc", "roc_acu"), "rules.yaml, rule 1: .*roc_auc"),
    ],
)
def test_rules_that_cannot_be_used_are_named(data: Path, tmp_path: Path, rules: str, words: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(rules)
    with pytest.raises(ConfigError, match=words):
        MleBenchSuite(options(data, CACTUS, rules=path)).load()


def test_answers_that_fit_no_rule_stop_no_other_competition(data: Path) -> None:
    file = data / PIZZA / "prepared" / RULES[PIZZA].answers
    file.write_text("request_id,request_id\n1,2\n")
    tasks = MleBenchLiteSuite(options(data, CACTUS, PIZZA)).load()
    assert list(tasks.bundles) == [CACTUS]
    assert "has several columns 'request_id'" in tasks.missing[PIZZA]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answers": "x" * 5000}, "File name too long"),
        ({"answers": "private"}, "is no file"),
        ({"columns": ["nope"]}, "has no column 'nope'; mend the columns of its rule"),
        ({"kind": "values", "columns": ["has_cactus"]}, "its grading rule cannot be used: metric 'roc_auc' takes"),
        ({"metric_params": {"zzz": 1}, "columns": ["has_cactus"]}, "rule cannot be used: .*zzz"),
    ],
)
def test_a_rule_that_does_not_fit_costs_its_own_competition(
    data: Path, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps([{**RULES[CACTUS].to_dict(), **change}]))
    tasks = MleBenchSuite(options(data, CACTUS, PIZZA, rules=path)).load()
    assert list(tasks.bundles) == [PIZZA]
    assert re.search(words, tasks.missing[CACTUS])
    assert CACTUS in tasks.missing[CACTUS] or "x" * 99 in tasks.missing[CACTUS]


def test_ids_and_paths_of_no_text_cost_their_own_line(data: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.csv"
    good.write_bytes(csv(Made(CACTUS, many_classes()).table(Made(CACTUS, many_classes()).truth)))
    pairs = [(f"{CACTUS}\ud800", str(good)), (CACTUS, "\ud800.csv"), (CACTUS.upper(), str(good)), (CACTUS, str(good))]
    listed = tmp_path / "submission.jsonl"
    lines = [json.dumps({"competition_id": name, "submission_path": path}) for name, path in pairs]
    listed.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    args = ["eval", "--suite", "mle-bench-lite", "--data", str(data), "--submissions", str(listed)]
    result = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "graded")])
    assert result.exit_code == 1, result.output
    report = strict(tmp_path / "graded/grading_report.json")
    assert [each["score"] for each in report["competition_reports"]] == [None, 1.0]
    assert len(report["not_graded"]) == 2
    for name in ("", 3, "x" * 1000):
        listed.write_text(json.dumps({"competition_id": name, "submission_path": None}))
        with pytest.raises(ConfigError, match="line 1: competition_id is no id"):
            read_submissions(listed)


def test_a_place_for_the_reports_that_is_taken_keeps_the_run(data: Path, tmp_path: Path) -> None:
    assert invoke(data, tmp_path, "--competition", CACTUS).exit_code == 0
    shutil.rmtree(tmp_path / "run/mle-bench")
    (tmp_path / "run/mle-bench").write_text("mine")
    again = invoke(data, tmp_path, "--competition", CACTUS, "--resume")
    assert isinstance(again.exception, ConfigError)
    assert "the run is kept" in str(again.exception)


def test_two_ids_of_one_task_are_refused(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(f"- {{{RULE}}}".replace("OTHER", CACTUS.replace("-", "_")))
    with pytest.raises(ConfigError, match="have one task id"):
        MleBenchSuite(options(data, CACTUS, CACTUS.replace("-", "_"), rules=path)).load()


def test_lines_of_any_depth_and_paths_of_any_length_are_one_sentence(data: Path, tmp_path: Path) -> None:
    listed = tmp_path / "submission.jsonl"
    listed.write_text("[" * 100_000 + "\n")
    with pytest.raises(ConfigError, match="line 1: needs competition_id"):
        read_submissions(listed)
    made = tmp_path / "good.csv"
    made.write_bytes(csv(Made(CACTUS, many_classes()).table(Made(CACTUS, many_classes()).truth)))
    paths = ["x" * 9000 + ".csv", "null\0.csv", str(made)]
    lines = [json.dumps({"competition_id": CACTUS, "submission_path": path}) + "\n" for path in paths]
    listed.write_text("".join(lines))
    args = ["eval", "--suite", "mle-bench-lite", "--data", str(data), "--submissions", str(listed)]
    result = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "graded")])
    assert result.exit_code == 1, result.output
    report = strict(tmp_path / "graded/grading_report.json")
    assert [each["score"] for each in report["competition_reports"]] == [None, 1.0]
    assert len(report["not_graded"]) == 1
    assert all(len(each["reason"]) < 400 for each in report["not_graded"])
    both = CliRunner().invoke(app, [*args, "--policy", "scripted:linear", "--out", str(tmp_path / "x")])
    assert "exclude each other" in str(both.exception)
    unwritable = CliRunner().invoke(app, [*args, "--out", str(made / "below")])
    assert "choose another --out" in str(unwritable.exception)


def test_a_leaderboard_with_two_columns_of_scores_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / f"{CACTUS}.csv").write_text("score,score\n1,2\n")
    suite = MleBenchLiteSuite(options(data, CACTUS, PIZZA, leaderboards=tmp_path))
    with pytest.raises(ConfigError, match="several columns 'score'"):
        suite.load()


def test_a_submission_is_read_as_far_as_the_graders_of_the_suite_look(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(DEFAULT_CAPS.size_bytes + 1000)
    assert len(_submission(path) or b"") == DEFAULT_CAPS.size_bytes + 1000
