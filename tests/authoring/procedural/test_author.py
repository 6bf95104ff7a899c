import csv
import hashlib
import io
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from sandmle.authoring.base import Author
from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.authoring.procedural.difficulty import knobs_of, named_difficulty
from sandmle.errors import ConfigError
from sandmle.grading import AnswerKey, ScoringRule, medal_of, read_submission, threshold_problems
from sandmle.records import Ladder, Medal, Tier
from sandmle.seeds import load_seed, seed_ids
from sandmle.tasks.bundle import BundleDraft, load_bundle, write_bundle

# Prints a digest of all files of tasks made in the given order, in a fresh process.
DIGEST_SCRIPT = """
import hashlib, sys
from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.seeds import load_seed
author = ProceduralAuthor()
for pair in sys.argv[1:]:
    seed, number = pair.split("@")
    draft = author.propose(load_seed(seed), int(number))
    digest = hashlib.sha256()
    for path, data in sorted(draft.files.items()):
        digest.update(path.encode() + data)
    digest.update(draft.sealed_spec().to_json().encode())
    print(pair, digest.hexdigest())
"""


def rows_of(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def digests(pairs: list[str], **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", DIGEST_SCRIPT, *pairs],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split() for line in done.stdout.splitlines())


def test_author_keeps_the_contract() -> None:
    assert isinstance(ProceduralAuthor(), Author)


def test_difficulties_between_the_names() -> None:
    assert [named_difficulty(level) for level in (0, 0.5, "1.0")] == ["easy", "medium", "hard"]
    low, middle, high = (knobs_of(level) for level in ("0.2", "0.4", "0.9"))
    assert low.graded_share > middle.graded_share > high.graded_share
    assert low.slope_factor > middle.slope_factor > high.slope_factor
    assert sum(middle.n_cliffs) == pytest.approx(1.0)
    assert ProceduralAuthor(difficulty=0.25).difficulty == ProceduralAuthor(difficulty="0.25").difficulty == "0.25"


def test_a_difficulty_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"difficulty 1\.5 is not between 0 and 1"):
        ProceduralAuthor(difficulty=1.5)


def test_unknown_difficulty_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'medium'"):
        ProceduralAuthor(difficulty="mediun")


def test_drafts_are_whole_bundles(drafts: dict[str, BundleDraft], tmp_path) -> None:
    for draft in drafts.values():
        write_bundle(draft, tmp_path)
        bundle = load_bundle(tmp_path / draft.spec.task_id)
        assert bundle.spec.provenance.author == "procedural"
        for path in ("provenance/dna.yaml", "provenance/rule.md", "provenance/ladder.json", "private/oracle.csv"):
            assert bundle.read(path)


def test_thresholds_are_certifiable(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        ladder = Ladder.model_validate_json(draft.files["provenance/ladder.json"])
        assert threshold_problems(draft.spec.thresholds, ladder, draft.spec.direction) == []
        assert {rung.tier for rung in ladder.rungs} == set(Tier)


def test_n07_oracle_wins_gold_and_sample_nothing(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        spec = draft.spec
        key = AnswerKey.parse(ScoringRule.of(spec), draft.files["private/answers.csv"]).subset("private")
        assert key.n_rows == spec.n_private
        oracle = key.score(read_submission(key, draft.files["private/oracle.csv"]))
        sample = key.score(read_submission(key, draft.files["public/sample_submission.csv"]))
        assert medal_of(oracle, spec.thresholds, spec.direction) is Medal.GOLD
        assert medal_of(sample, spec.thresholds, spec.direction) is Medal.NONE
        assert not spec.direction.better(sample, spec.thresholds.median.score)


def test_n07_perfect_answers_get_the_best_value(drafts: dict[str, BundleDraft]) -> None:
    for seed in ("spaceship-titanic", "plant-pathology-2021-fgvc8", "nfl-player-contact-detection"):
        spec, files = drafts[seed].spec, drafts[seed].files
        key = AnswerKey.parse(ScoringRule.of(spec), files["private/answers.csv"])
        wanted = [spec.id_column, *spec.target.columns]
        rows = [[row[name] for name in wanted] for row in rows_of(files["private/answers.csv"])]
        perfect = "\n".join(",".join(row) for row in [wanted, *rows]) + "\n"
        for part in ("private", "public"):
            subset = key.subset(part)
            score = subset.score(read_submission(subset, perfect.encode()))
            assert score == pytest.approx(key.metric.best)


def test_n01_public_files_hold_no_answers_seed_or_rule(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        spec = draft.spec
        public = {
            path: data for path, data in draft.files.items() if path.startswith("public/") or path.endswith(".md")
        }
        text_of = {path: data.decode() for path, data in public.items() if not path.endswith(".png")}
        text_of.pop("provenance/rule.md")
        secrets = [spec.provenance.seed_id, "oracle", "hidden rule", "leaderboard,", repr(spec.thresholds.gold.score)]
        for path, text in text_of.items():
            for secret in secrets:
                assert str(secret) not in text, (path, secret)
        for path, data in public.items():
            if path.endswith(".png"):
                assert b"tEXt" not in data
                assert b"tIME" not in data
        test = rows_of(draft.files["public/test.csv"])
        assert not set(spec.target.columns) & set(test[0])


def test_n04_n17_label_sets_are_equal_everywhere(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        spec = draft.spec
        if not spec.target.labels or len(spec.target.columns) > 1:
            continue  # numbers, orders
        name = spec.target.columns[0]
        answers = rows_of(draft.files["private/answers.csv"])
        parts = {
            "train": [row[name] for row in rows_of(draft.files["public/train.csv"])],
            "public": [row[name] for row in answers if row["leaderboard"] == "public"],
            "private": [row[name] for row in answers if row["leaderboard"] == "private"],
        }
        description = draft.files["description.md"].decode()
        for part, cells in parts.items():
            labels = {label for cell in cells for label in cell.split()}
            assert labels == set(spec.target.labels), part
        for label in spec.target.labels:
            assert f"`{label}`" in description


def test_n05_description_tells_realised_shares(drafts: dict[str, BundleDraft]) -> None:
    draft = drafts["spaceship-titanic"]
    name = draft.spec.target.columns[0]
    cells = [row[name] for row in rows_of(draft.files["public/train.csv"])]
    description = draft.files["description.md"].decode()
    for label in draft.spec.target.labels:
        share = 100 * cells.count(label) / len(cells)
        assert f"`{label}` {share:.1f} %" in description


@pytest.mark.slow
def test_n08_n10_n14_same_bytes_in_every_process_order_and_thread_count() -> None:
    pairs = ["spaceship-titanic@3", "us-patent-phrase-to-phrase-matching@4", "plant-pathology-2021-fgvc8@5"]
    expected = digests(pairs, PYTHONHASHSEED="0", OMP_NUM_THREADS="1")
    assert digests(pairs[::-1], PYTHONHASHSEED="1", OMP_NUM_THREADS="4") == expected
    assert digests(pairs[1:2], PYTHONHASHSEED="2") == {pairs[1]: expected[pairs[1]]}


def test_n08_n10_same_bytes_in_a_fresh_process(drafts: dict[str, BundleDraft]) -> None:
    pair = "us-patent-phrase-to-phrase-matching@11"
    draft = drafts["us-patent-phrase-to-phrase-matching"]
    digest = hashlib.sha256()
    for path, data in sorted(draft.files.items()):
        digest.update(path.encode() + data)
    digest.update(draft.sealed_spec().to_json().encode())
    # This process made another task before, and hashes texts differently.
    assert digests([pair], PYTHONHASHSEED="7") == {pair: digest.hexdigest()}


def test_n10_regenerate_gives_the_same_files_whatever_was_made_before(drafts: dict[str, BundleDraft]) -> None:
    author = ProceduralAuthor()
    random.seed(1)
    np.random.seed(1)
    for seed in reversed(drafts):
        again = author.regenerate(load_seed(seed), 11)
        assert {"public/train.csv", "public/test.csv", "private/answers.csv", "public/sample_submission.csv"} <= set(
            again
        )
        for path, data in again.items():
            assert drafts[seed].files[path] == data, path


def test_other_rng_seeds_give_other_tasks() -> None:
    author, seed = ProceduralAuthor(), load_seed("spaceship-titanic")
    tables = {author.regenerate(seed, number)["public/train.csv"] for number in range(4)}
    assert len(tables) == 4


def test_task_ids_reveal_neither_seed_nor_family(drafts: dict[str, BundleDraft]) -> None:
    ids = [draft.spec.task_id for draft in drafts.values()]
    assert len(set(ids)) == len(ids)
    for seed, draft in drafts.items():
        assert re.fullmatch(r"[a-z]+-[a-z]+-[0-9a-f]{6}", draft.spec.task_id)
        assert not set(draft.spec.task_id.split("-")) & (set(seed.split("-")) - {"detection"})


def test_sizes_are_as_promised(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        spec = draft.spec
        answers = rows_of(draft.files["private/answers.csv"])
        parts = [row["leaderboard"] for row in answers]
        assert 50 <= spec.n_train <= 200
        assert len(rows_of(draft.files["public/train.csv"])) == spec.n_train
        assert parts.count("private") == spec.n_private >= 1000
        assert parts.count("public") == spec.n_public
        assert spec.n_public in (100, 200, 300)


def test_n16_groups_are_disjoint(drafts: dict[str, BundleDraft]) -> None:
    draft = drafts["nfl-player-contact-detection"]
    assert draft.spec.dna.groups
    group = draft.spec.columns[0].name
    train = {row[group] for row in rows_of(draft.files["public/train.csv"])}
    test = {row[group] for row in rows_of(draft.files["public/test.csv"])}
    assert train
    assert not train & test


def test_ids_are_random_and_rows_shuffled(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        spec = draft.spec
        answers = rows_of(draft.files["private/answers.csv"])
        ids = [row[spec.id_column] for row in answers]
        assert len(set(ids)) == len(ids)
        is_public = np.array([row["leaderboard"] == "public" for row in answers], dtype=float)
        place = np.argsort(np.argsort(ids))
        assert abs(np.corrcoef(place, is_public)[0, 1]) < 0.1
        assert abs(np.corrcoef(np.arange(len(ids)), is_public)[0, 1]) < 0.1


def test_every_seed_has_a_plan_and_data() -> None:
    author = ProceduralAuthor()
    for seed in seed_ids()[::7]:
        assert author.regenerate(load_seed(seed), 5)["public/train.csv"].count(b"\n") > 50


@pytest.mark.slow
def test_all_sixty_seeds_give_certifiable_tasks() -> None:
    author = ProceduralAuthor()
    lost = []
    for seed in seed_ids():
        draft = author.propose(load_seed(seed), 77)
        ladder = Ladder.model_validate_json(draft.files["provenance/ladder.json"])
        if threshold_problems(draft.spec.thresholds, ladder, draft.spec.direction):
            lost.append(seed)
    assert len(lost) <= 4


def test_description_names_metric_files_and_limits(drafts: dict[str, BundleDraft]) -> None:
    for draft in drafts.values():
        spec, text = draft.spec, draft.files["description.md"].decode()
        better = "higher" if spec.direction.value == "maximize" else "lower"
        assert f"\nMetric: {spec.metric} ({better} is better)\n" in text
        for column in spec.columns:
            assert f"`{column.name}`" in text or column.name.startswith("t_")
        head = "\n".join(draft.files["public/sample_submission.csv"].decode().splitlines()[:3])
        assert head in text
        for words in ("./input/train.csv", "./submission.csv", "90 seconds", str(spec.n_train)):
            assert words in text


@pytest.mark.parametrize("difficulty", ["easy", "hard"])
def test_other_difficulties_give_certifiable_tasks(difficulty) -> None:
    author = ProceduralAuthor(difficulty=difficulty)
    draft = author.propose(load_seed("spaceship-titanic"), 2)
    ladder = Ladder.model_validate_json(draft.files["provenance/ladder.json"])
    assert threshold_problems(draft.spec.thresholds, ladder, draft.spec.direction) == []


def test_paper_preset_gives_monotone_thresholds() -> None:
    draft = ProceduralAuthor(preset="paper").propose(load_seed("spaceship-titanic"), 2)
    assert draft.spec.thresholds.preset == "paper"
    scores = draft.spec.thresholds.scores()
    assert list(scores) == sorted(set(scores))
