"""Faults put into sound tasks on purpose: the check that is there for them must fire, and say where."""

import io
import zipfile
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from PIL import Image, PngImagePlugin

from sandmle.gate import GateContext
from sandmle.gate.checks.evaluator import run as evaluator_run
from sandmle.records import Direction, Threshold, Verdict
from sandmle.tasks import BundleDraft
from tests import bundles
from tests.bundles import table, with_file, with_spec, with_table
from tests.gate.conftest import Ask

TRAIN, TEST, ANSWERS = "public/train.csv", "public/test.csv", "private/answers.csv"
SAMPLE, ORACLE = "public/sample_submission.csv", "private/oracle.csv"
ID = "record_id"


def rename_ids(draft: BundleDraft, new_ids: dict[str, str]) -> BundleDraft:
    for path in (TRAIN, TEST, ANSWERS, SAMPLE, ORACLE):
        frame = table(draft, path)
        frame[ID] = frame[ID].map(new_ids)
        draft = with_table(draft, path, frame)
    return draft


def numbered(draft: BundleDraft, order: Callable[[pd.DataFrame], pd.DataFrame], form: str) -> BundleDraft:
    """Numbers all rows in an order that a function of the answers gives."""
    target = draft.spec.target.columns[0]
    known = pd.concat([table(draft, TRAIN)[[ID, target]], table(draft, ANSWERS)[[ID, target]]])
    ids = order(known)[ID]
    return rename_ids(draft, {own: form.format(number) for number, own in enumerate(ids)})


def reordered(draft: BundleDraft, path: str, by: pd.Series) -> BundleDraft:
    frame = table(draft, path)
    return with_table(draft, path, frame.iloc[np.argsort(by.to_numpy(), kind="stable")])


def test_n01_ids_in_the_order_of_the_answers(ask: Ask) -> None:
    draft = numbered(bundles.draft("regression"), lambda known: known.sort_values("wear"), "r{:05d}")
    result = ask(draft, "order_leaks")
    assert result.verdict is Verdict.INVALID
    assert "order of record_id" in result.message


def test_n01_ids_whose_parity_is_the_label(ask: Ask) -> None:
    draft = bundles.draft("binary")
    known = pd.concat([table(draft, TRAIN)[[ID, "failed"]], table(draft, ANSWERS)[[ID, "failed"]]])
    numbers = np.random.default_rng(0).permutation(len(known)) * 2 + known["failed"].to_numpy()
    result = ask(
        rename_ids(draft, {own: f"r{number}" for own, number in zip(known[ID], numbers, strict=True)}), "order_leaks"
    )
    assert result.verdict is Verdict.INVALID
    assert "modulo 2" in result.message


def test_n01_ids_with_the_label_in_them(ask: Ask) -> None:
    draft = bundles.draft("text")
    known = pd.concat([table(draft, TRAIN)[[ID, "tone"]], table(draft, ANSWERS)[[ID, "tone"]]])
    new = {own: f"{'ab'[tone == 'calm']}{number}" for number, (own, tone) in enumerate(known.itertuples(index=False))}
    assert ask(rename_ids(draft, new), "order_leaks").verdict is Verdict.INVALID


@pytest.mark.parametrize("path", [TRAIN, TEST])
def test_n01_rows_sorted_by_the_answers(ask: Ask, path: str) -> None:
    draft = bundles.draft("regression")
    known = table(draft, TRAIN if path == TRAIN else ANSWERS)["wear"]
    result = ask(reordered(draft, path, known), "order_leaks")
    assert result.verdict is Verdict.INVALID
    assert result.message.startswith(f"in {path.removeprefix('public/')}, the row order tells 'wear'")


def test_n01_rows_in_blocks_of_one_label(ask: Ask) -> None:
    draft = bundles.draft("multiclass")
    answers = table(draft, ANSWERS)
    middle_first = answers[["low", "middle", "high"]].to_numpy() @ np.array([1, 0, 1])
    assert ask(reordered(draft, TEST, pd.Series(middle_first)), "order_leaks").verdict is Verdict.INVALID


def test_n01_alternating_short_runs_are_found_by_their_neighbours(ask: Ask) -> None:
    draft = bundles.draft("binary")
    labels = table(draft, ANSWERS)["failed"].to_numpy()
    ones, zeros = list(np.flatnonzero(labels == 1)), list(np.flatnonzero(labels == 0))
    order: list[int] = []
    while ones or zeros:
        order += [ones.pop() for _ in range(min(5, len(ones)))] + [zeros.pop() for _ in range(min(5, len(zeros)))]
    frame = table(draft, TEST).iloc[order]
    assert ask(with_table(draft, TEST, frame), "order_leaks").verdict is Verdict.INVALID


def renamed_images(draft: BundleDraft, name: Callable[[str, int], str]) -> BundleDraft:
    """Gives picture files new names, by the row's id and label."""
    labels = {
        row_id: int(label)
        for path in (TRAIN, ANSWERS)
        for row_id, label in table(draft, path)[[ID, "failed"]].itertuples(index=False)
    }
    files = dict(draft.files)
    for path in (TRAIN, TEST):
        frame = table(draft, path)
        for row_id, old in frame[[ID, "image"]].itertuples(index=False):
            files[f"public/{name(row_id, labels[row_id])}"] = files.pop(f"public/{old}")
        frame["image"] = [name(row_id, labels[row_id]) for row_id in frame[ID]]
        files[path] = frame.to_csv(index=False).encode()
    return BundleDraft(draft.spec, files)


@pytest.mark.parametrize("form", ["images/{label}_{id}.png", "images/{word}/{id}.png"])
def test_n01_file_names_and_folders_with_the_label(ask: Ask, form: str) -> None:
    words = {0: "whole", 1: "broken"}
    draft = renamed_images(
        bundles.draft("image"), lambda row_id, label: form.format(id=row_id, label=label, word=words[label])
    )
    assert ask(draft, "order_leaks").verdict is Verdict.INVALID


def changed_images(draft: BundleDraft, change: Callable[[bytes, int], bytes]) -> BundleDraft:
    files = dict(draft.files)
    for path in (TRAIN, ANSWERS):
        for row_id, label in table(draft, path)[[ID, "failed"]].itertuples(index=False):
            name = f"public/images/{row_id}.png"
            files[name] = change(files[name], int(label))
    return BundleDraft(draft.spec, files)


def encoded(data: bytes, **settings: object) -> bytes:
    out = io.BytesIO()
    with Image.open(io.BytesIO(data)) as picture:
        Image.fromarray(np.asarray(picture) // 64 * 64).save(out, format="PNG", **settings)
    return out.getvalue()


def test_n01_file_sizes_that_tell_the_label(ask: Ask) -> None:
    draft = changed_images(bundles.draft("image"), lambda data, label: encoded(data, compress_level=9 if label else 0))
    result = ask(draft, "order_leaks")
    assert result.verdict is Verdict.INVALID
    assert "file size of image beyond its pixels" in result.message


def test_n01_file_sizes_that_follow_from_the_pixels_are_honest(ask: Ask) -> None:
    draft = changed_images(bundles.draft("image"), lambda data, label: encoded(data, compress_level=1))
    assert ask(draft, "order_leaks").verdict is Verdict.VALID


def with_text(data: bytes, label: int) -> bytes:
    note = PngImagePlugin.PngInfo()
    note.add_text("comment", f"class {label}")
    return encoded(data, pnginfo=note)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_text, "'tEXt' chunk"),
        (lambda data, label: data + b"x", "bytes after its end"),
        (lambda data, label: data[:-9], "cut off"),
    ],
)
def test_n01_metadata_in_pictures(ask: Ask, change: Callable[[bytes, int], bytes], words: str) -> None:
    result = ask(changed_images(bundles.draft("image"), change), "media_metadata")
    assert result.verdict is Verdict.INVALID
    assert words in result.message


def test_n01_comments_and_times_in_archives(ask: Ask) -> None:
    for comment, minute in ((b"seed 7", 0), (b"", 5)):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(zipfile.ZipInfo("a.txt", (2020, 1, 1, 0, 0, 0)), "a")
            archive.writestr(zipfile.ZipInfo("b.txt", (2020, 1, 1, 0, minute, 0)), "b")
            archive.comment = comment
        draft = with_file(bundles.draft("regression"), "public/notes.zip", out.getvalue())
        assert ask(draft, "media_metadata").verdict is Verdict.INVALID


def disclosed(draft: BundleDraft, **more: str) -> BundleDraft:
    text = draft.files["description.md"].decode() + "\n".join(more.values())
    return with_file(draft, "description.md", text.encode())


@pytest.mark.parametrize(
    "sentence",
    [
        "The answers are in private/answers.csv.",
        "Made with rng_seed 5.",
        "Gold is at 0.8845.",
        "See evaluator.py.",
    ],
)
def test_n01_secrets_in_the_description(ask: Ask, sentence: str) -> None:
    assert ask(disclosed(bundles.draft("binary"), more=sentence), "disclosure").verdict is Verdict.INVALID


def test_n01_a_round_number_that_happens_to_be_a_milestone_is_no_secret(ask: Ask) -> None:
    draft = bundles.draft("regression")
    bronze = draft.spec.thresholds.bronze.replace(score=10.0)
    draft = with_spec(draft, thresholds=draft.spec.thresholds.replace(bronze=bronze))
    assert ask(disclosed(draft, more="Values reach from 10.0 to 99.0."), "disclosure").verdict is Verdict.VALID


def test_n01_the_answers_written_into_a_text(ask: Ask) -> None:
    draft = bundles.draft("binary")
    cells = [str(cell) for cell in table(draft, ANSWERS)["failed"]]
    for text in ("[" + ", ".join(cells) + "]", "\n".join(cells)):
        result = ask(with_file(draft, "public/notes.txt", text.encode()), "disclosure")
        assert result.verdict is Verdict.INVALID
        assert "public/notes.txt holds the answers" in result.message


def test_n01_an_extra_file_named_like_a_secret(ask: Ask) -> None:
    result = ask(with_file(bundles.draft("binary"), "public/labels.bin", b"\x00\x01"), "disclosure")
    assert result.verdict is Verdict.INVALID


@pytest.mark.parametrize("path", [TEST, SAMPLE])
def test_n01_the_answers_as_a_column_of_another_name(ask: Ask, path: str) -> None:
    draft = bundles.draft("text")
    frame = table(draft, path)
    frame["tone" if path == SAMPLE else "mood"] = table(draft, ANSWERS)["tone"].map(
        {"calm": "calm", "urgent": "urgent"}
    )
    assert ask(with_table(draft, path, frame), "disclosure").verdict is Verdict.INVALID


def test_the_target_in_the_test_file_breaks_the_bundle(ask: Ask) -> None:
    draft = bundles.draft("regression")
    frame = table(draft, TEST)
    frame["wear"] = table(draft, ANSWERS)["wear"]
    result = ask(with_table(draft, TEST, frame), "bundle_integrity")
    assert result.verdict is Verdict.INVALID
    assert "'wear', which is to be predicted" in result.message


@pytest.mark.parametrize(
    "sentence",
    [
        "The hidden rule is simple.",
        "The label is 1 if size exceeds 50.",
        "The noise level is moderate.",
        "wear grows by 3.71 for each unit and falls by 1.284 at night",
        "each record was scored by adding nine tenths of its standardised size",
    ],
)
def test_a_description_that_gives_the_rule_away(ask: Ask, sentence: str) -> None:
    rule = (
        b"# Rule\n\nEach record was scored by adding nine tenths of its standardised size; 3.71 and 1.284 are slopes.\n"
    )
    draft = with_file(bundles.draft("regression"), "provenance/rule.md", rule)
    assert ask(draft, "rule_revealed").verdict is Verdict.VALID
    assert ask(disclosed(draft, more=sentence), "rule_revealed").verdict is Verdict.INVALID


@pytest.mark.parametrize("word", ["`drift`", "RMSE", "root mean squared error", "lower is better", "`age`"])
def test_n17_a_description_that_leaves_something_out(ask: Ask, word: str) -> None:
    draft = bundles.draft("regression")
    text = draft.files["description.md"].decode()
    if word in ("RMSE", "root mean squared error"):
        text = text.replace("root mean squared error (RMSE)", "error")
    text = text.replace(word, "it")
    assert ask(draft, "description_consistent").verdict is Verdict.VALID
    assert ask(with_file(draft, "description.md", text.encode()), "description_consistent").verdict is Verdict.INVALID


def test_a_description_with_the_wrong_direction(ask: Ask) -> None:
    result = ask(
        disclosed(bundles.draft("regression"), more="A higher score is better: higher is better."),
        "description_consistent",
    )
    assert result.verdict is Verdict.INVALID
    assert "higher is better" in result.message


def test_n05_shares_that_are_not_the_realised_ones(ask: Ask) -> None:
    draft = bundles.draft("text")
    real = 100 * float((table(draft, TRAIN)["tone"] == "calm").mean())
    right, wrong = (f"Shares in train.csv: `calm` {share:.1f} %." for share in (real, real + 3))
    assert ask(disclosed(draft, more=right), "description_consistent").verdict is Verdict.VALID
    result = ask(disclosed(draft, more=wrong), "description_consistent")
    assert result.verdict is Verdict.INVALID
    assert "'calm'" in result.message


def test_n17_a_label_that_the_task_does_not_name(ask: Ask) -> None:
    draft = bundles.draft("text")
    frame = table(draft, TRAIN)
    frame.loc[3, "tone"] = "loud"
    result = ask(with_table(draft, TRAIN, frame), "label_coverage")
    assert result.verdict is Verdict.INVALID
    assert "train.csv has the label 'loud'" in result.message


def test_n04_a_class_that_no_training_row_has(ask: Ask) -> None:
    draft = bundles.draft("multiclass")
    frame = table(draft, TRAIN)
    result = ask(with_table(draft, TRAIN, frame[frame["high"] == 0]), "label_coverage")
    assert result.verdict is Verdict.INVALID
    assert "train.csv has no row of the label 'high'" in result.message


def test_n07_one_class_only(ask: Ask) -> None:
    draft = bundles.draft("binary")
    frame = table(draft, ANSWERS)
    frame["failed"] = 0
    one_class = with_table(draft, ANSWERS, frame)
    assert ask(one_class, "degenerate_labels").verdict is Verdict.INVALID
    assert ask(one_class, "metric_defined").verdict is Verdict.INVALID
    assert ask(one_class, "evaluator_agrees").verdict is Verdict.INVALID


def test_n07_one_class_on_the_public_leaderboard_only(ask: Ask) -> None:
    draft = bundles.draft("binary")
    frame = table(draft, ANSWERS)
    frame.loc[frame["leaderboard"] == "public", "failed"] = 1
    result = ask(with_table(draft, ANSWERS, frame), "metric_defined")
    assert result.verdict is Verdict.INVALID
    assert "public rows" in result.message


def test_n07_so_few_positives_that_other_rows_would_have_none(ask: Ask) -> None:
    draft = bundles.draft("binary")
    frame = table(draft, ANSWERS)
    frame["failed"] = 0
    for leaderboard in ("public", "private"):
        frame.loc[frame.index[frame["leaderboard"] == leaderboard][:2], "failed"] = 1
    result = ask(with_table(draft, ANSWERS, frame), "metric_defined")
    assert result.verdict is Verdict.INVALID
    assert "bootstrap" in result.message


@pytest.mark.parametrize("kind", bundles.KINDS)
def test_n07_perfect_answers_get_the_best_value_and_gold(
    kind: str, context: Callable[[BundleDraft], GateContext]
) -> None:
    made = context(bundles.draft(kind))
    assert evaluator_run(made).passed
    score = made.private_key.score(made.perfect)
    assert score == pytest.approx(made.grader.key.metric.best, abs=1e-6)


def test_a_gold_that_perfect_answers_do_not_win(ask: Ask) -> None:
    draft = bundles.draft("regression")
    thresholds = draft.spec.thresholds.replace(gold=Threshold(score=-1.0, standard_error=0.05))
    result = ask(with_spec(draft, thresholds=thresholds), "evaluator_agrees")
    assert result.verdict is Verdict.INVALID
    assert "win no gold" in result.message


def test_a_direction_that_is_not_the_metrics(ask: Ask) -> None:
    result = ask(with_spec(bundles.draft("regression"), direction=Direction.MAXIMIZE), "evaluator_agrees")
    assert result.verdict is Verdict.ERROR
    assert "minimize" in result.message


def squeezed(draft: BundleDraft, share: float) -> BundleDraft:
    """Moves all milestones towards the median."""
    old = draft.spec.thresholds
    moved = {
        name: Threshold(
            score=old.median.score + share * (getattr(old, name).score - old.median.score),
            standard_error=old.median.standard_error,
        )
        for name in ("bronze", "silver", "gold")
    }
    return with_spec(draft, thresholds=old.replace(**moved))


def test_n13_milestones_too_close_together(ask: Ask) -> None:
    draft = bundles.draft("regression")
    assert ask(squeezed(draft, 0.5), "thresholds").verdict is Verdict.VALID
    result = ask(squeezed(draft, 0.05), "thresholds")
    assert result.verdict is Verdict.INVALID
    assert result.value is not None
    assert result.value < 2.0


def test_n13_the_paper_preset_asks_for_order_only(ask: Ask) -> None:
    draft = bundles.draft("regression")
    assert ask(squeezed(draft, 0.05), "thresholds", preset="paper").verdict is Verdict.VALID
    assert ask(squeezed(draft, -0.05), "thresholds", preset="paper").verdict is Verdict.INVALID


def test_milestones_in_the_wrong_order(ask: Ask) -> None:
    result = ask(squeezed(bundles.draft("binary"), -0.2), "thresholds")
    assert result.verdict is Verdict.INVALID
    assert "bronze" in result.message


def test_milestones_without_a_ladder_are_bounded_by_sample_and_oracle(ask: Ask) -> None:
    draft = bundles.draft("regression")
    files = {path: data for path, data in draft.files.items() if path != "provenance/ladder.json"}
    bare = BundleDraft(draft.spec, files)
    assert ask(bare, "thresholds").verdict is Verdict.VALID
    assert ask(squeezed(bare, 0.05), "thresholds").verdict is Verdict.INVALID


def test_a_ladder_of_another_metric(ask: Ask) -> None:
    draft = bundles.draft("regression")
    ladder = draft.files["provenance/ladder.json"].replace(b'"rmse"', b'"mae"')
    assert ask(with_file(draft, "provenance/ladder.json", ladder), "thresholds").verdict is Verdict.INVALID


def test_an_oracle_that_wins_no_gold(ask: Ask) -> None:
    draft = bundles.draft("regression")
    frame = table(draft, ORACLE)
    frame["wear"] = frame["wear"] + 10
    result = ask(with_table(draft, ORACLE, frame), "oracle_wins_gold")
    assert result.verdict is Verdict.INVALID


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression", "text"])
def test_a_bronze_that_needs_no_work(ask: Ask, kind: str) -> None:
    draft = bundles.draft(kind)
    easy = {"binary": 0.5, "multiclass": 1.2, "regression": 8.0, "text": 0.3}[kind]
    result = ask(
        with_spec(draft, thresholds=draft.spec.thresholds.replace(bronze=Threshold(score=easy))), "trivial_submissions"
    )
    assert result.verdict is Verdict.INVALID


def test_a_sample_submission_that_is_the_answers(ask: Ask) -> None:
    draft = bundles.draft("regression")
    answers = table(draft, ANSWERS).drop(columns="leaderboard")
    assert ask(with_table(draft, SAMPLE, answers), "trivial_submissions").verdict is Verdict.INVALID
    assert ask(with_table(draft, SAMPLE, answers), "disclosure").verdict is Verdict.INVALID


def test_training_rows_that_come_back_in_the_test(ask: Ask) -> None:
    draft = bundles.draft("binary")
    train, test = table(draft, TRAIN), table(draft, TEST)
    inputs = [name for name in test.columns if name != ID]
    test.loc[:9, inputs] = train.loc[:9, inputs].to_numpy()
    result = ask(with_table(draft, TEST, test), "duplicates")
    assert result.verdict is Verdict.INVALID
    assert "10 rows of train.csv" in result.message


def test_pictures_that_come_back_under_another_name(ask: Ask) -> None:
    draft = bundles.draft("image")
    files = dict(draft.files)
    for old, new in zip(table(draft, TRAIN)["image"][:12], table(draft, TEST)["image"][:12], strict=True):
        files[f"public/{new}"] = files[f"public/{old}"]
    assert ask(BundleDraft(draft.spec, files), "duplicates").verdict is Verdict.INVALID


def test_rows_of_few_valued_columns_may_meet_by_chance(ask: Ask) -> None:
    draft = bundles.draft("binary")
    for path in (TRAIN, TEST):
        frame = table(draft, path)
        frame[["size", "load", "age", "drift"]] = (frame[["size", "load", "age", "drift"]].rank(pct=True) > 0.5).astype(
            int
        )
        draft = with_table(draft, path, frame)
    result = ask(draft, "duplicates")
    assert result.verdict is Verdict.VALID


def spoilt(draft: BundleDraft, column: Callable[[pd.Series], pd.Series]) -> BundleDraft:
    """Makes a column of the answers and puts it where ``drift`` was."""
    target = draft.spec.target.columns[0]
    for path, source in ((TRAIN, TRAIN), (TEST, ANSWERS)):
        frame = table(draft, path)
        frame["drift"] = column(table(draft, source)[target])
        draft = with_table(draft, path, frame)
    return draft


@pytest.mark.parametrize(
    "column",
    [
        lambda wear: wear,
        lambda wear: 7 - 3 * wear,
        lambda wear: wear.round(0),
        lambda wear: wear + np.random.default_rng(1).normal(0, 0.5, len(wear)),
    ],
)
def test_n02_a_column_that_is_the_target(ask: Ask, column: Callable[[pd.Series], pd.Series]) -> None:
    result = ask(spoilt(bundles.draft("regression"), column), "single_column")
    assert result.verdict is Verdict.INVALID
    assert "'drift'" in result.message


@pytest.mark.parametrize(
    "column",
    [
        lambda failed: failed * 2 + np.random.default_rng(1).random(len(failed)),
        lambda failed: 1 - failed,
        lambda failed: failed.where(np.random.default_rng(1).random(len(failed)) > 0.05, 1 - failed),
    ],
)
def test_n02_a_column_that_thresholds_to_the_target(ask: Ask, column: Callable[[pd.Series], pd.Series]) -> None:
    assert ask(spoilt(bundles.draft("binary"), column), "single_column").verdict is Verdict.INVALID


def test_test_rows_from_somewhere_else(ask: Ask) -> None:
    draft = bundles.draft("binary")
    frame = table(draft, TEST)
    frame["size"] = frame["size"] + 12
    shifted = with_table(draft, TEST, frame)
    assert ask(shifted, "train_test_shift").verdict is Verdict.INVALID
    later = with_spec(shifted, dna=draft.spec.dna.replace(time_ordered=True))
    assert ask(later, "train_test_shift").verdict is Verdict.VALID


def test_n16_entities_on_both_sides(ask: Ask) -> None:
    draft = bundles.draft("binary")
    draft = with_spec(draft, dna=draft.spec.dna.replace(groups=True))
    assert ask(draft, "groups_disjoint").verdict is Verdict.INVALID
    rng = np.random.default_rng(3)
    for path, first in ((TRAIN, 0), (TEST, 25)):
        frame = table(draft, path)
        frame["colour"] = [f"e{first + entity}" for entity in rng.integers(0, 25, len(frame))]
        draft = with_table(draft, path, frame)
    assert ask(draft, "groups_disjoint").verdict is Verdict.VALID
    frame.loc[5, "colour"] = "e3"
    result = ask(with_table(draft, TEST, frame), "groups_disjoint")
    assert result.verdict is Verdict.INVALID
    assert "'colour'" in result.message


def test_n19_spread_that_tells_what_matters(ask: Ask) -> None:
    draft = bundles.draft("regression")
    rng = np.random.default_rng(2)
    names = [f"x{at}" for at in range(10)]
    for path, source in ((TRAIN, TRAIN), (TEST, ANSWERS)):
        frame = table(draft, path)
        wear = table(draft, source)["wear"]
        for at, name in enumerate(names):
            frame[name] = (0.1 * at * (wear - wear.mean()) / wear.std() + rng.normal(0, 1, len(wear))) * (1 + at)
        draft = with_table(draft, path, frame.drop(columns=["size", "load", "age", "drift"]))
    assert ask(draft, "informative_scale").verdict is Verdict.INVALID


@pytest.mark.parametrize("path", [TRAIN, "private/answers.csv"])
def test_n08_an_author_that_makes_other_bytes_again(ask: Ask, path: str) -> None:
    draft = bundles.draft("binary")
    same = {name: data for name, data in draft.files.items() if name.startswith(("public/", "private/"))}
    assert ask(draft, "determinism", regenerate=lambda: same).verdict is Verdict.VALID
    result = ask(draft, "determinism", regenerate=lambda: {**same, path: same[path].replace(b"1", b"2", 1)})
    assert result.verdict is Verdict.INVALID
    assert path in result.message
    assert ask(draft, "determinism", regenerate=lambda: {}).verdict is Verdict.INVALID


@pytest.mark.parametrize(("n_train", "n_private", "value"), [(40, 1000, 40.0), (220, 1000, 220.0), (100, 600, 600.0)])
def test_sizes_beyond_the_limits(ask: Ask, n_train: int, n_private: int, value: float) -> None:
    result = ask(bundles.draft("regression", 0, n_train, n_private), "sizes")
    assert result.verdict is Verdict.INVALID
    assert result.value == value


def test_integrity_names_what_is_wrong(ask: Ask) -> None:
    draft = bundles.draft("regression")
    train, answers = table(draft, TRAIN), table(draft, ANSWERS)
    twice = train.copy()
    twice.loc[1, ID] = twice.loc[0, ID]
    board = answers.copy()
    board.loc[0, "leaderboard"] = "secret"
    wrong = {
        "lacks the column 'wear'": with_table(draft, ANSWERS, answers.rename(columns={"wear": "tear"})),
        "twice": with_table(draft, TRAIN, twice),
        "task.yaml says n_train 150, the tables hold 149": with_table(draft, TRAIN, train[:-1]),
        "do not have the same ids": with_table(draft, ANSWERS, answers[1:]),
        "leaderboard 'secret'": with_table(draft, ANSWERS, board),
        "nothing to learn from": with_table(draft, TRAIN, train.drop(columns="wear")),
    }
    for words, bad in wrong.items():
        result = ask(bad, "bundle_integrity")
        assert result.verdict is Verdict.INVALID
        assert words in result.message
