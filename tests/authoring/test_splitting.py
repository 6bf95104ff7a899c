import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.authoring.splitting import SIDES, Split, make_split, split_table, write_split
from sandmle.cli.main import app
from sandmle.errors import ConfigError
from sandmle.records import TaskSpec
from sandmle.seeds import load_record, seed_ids
from sandmle.tasks import find_bundles
from tests import bundles


def specs(n_each: int = 3, seeds: tuple[str, ...] = seed_ids()) -> list[TaskSpec]:
    base = bundles.draft("regression").spec
    made = []
    for at, seed in enumerate(seeds):
        dna = load_record(seed).dna
        for k in range(n_each):
            made.append(
                base.replace(
                    task_id=f"t{at:02d}-{k}",
                    modalities=dna.modalities,
                    task_kind=dna.task_kind,
                    provenance=base.provenance.replace(seed_id=seed, rng_seed=k),
                    files={"public/train.csv": f"{at}-{k}"},
                )
            )
    return made


@pytest.mark.parametrize("rng_seed", range(5))
def test_no_seed_is_on_both_sides_and_the_shares_hold(rng_seed: int) -> None:
    split = make_split(specs(), validation_share=0.2, rng_seed=rng_seed)
    sides = [{entry.seed_id for entry in split.side(side)} for side in SIDES]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == 12
    assert len(split.train) + len(split.validation) == 180
    for row in split_table(split):
        n_seeds = row["train_seeds"] + row["validation_seeds"]
        assert abs(row["validation_seeds"] - 0.2 * n_seeds) <= 1


def test_a_split_depends_on_nothing_but_tasks_and_options() -> None:
    made = specs()
    assert make_split(made) == make_split(list(reversed(made)))
    assert make_split(made) != make_split(made, rng_seed=1)


def test_lite_seeds_and_doubles_are_left_out_and_dojo_is_flagged() -> None:
    lite = "aerial-cactus-identification"
    made = specs(1, (*seed_ids()[:10], lite))
    made.append(made[0].replace(task_id="t99-0"))
    split = make_split(made, validation_share=0.3)
    assert [reason.split(":")[0] for reason in split.left_out] == ["t10-0", "t99-0"]
    for side in SIDES:
        for entry in split.side(side):
            assert entry.in_mle_dojo is load_record(entry.seed_id).in_mle_dojo


def test_too_few_seeds_for_two_sides_is_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match="too few"):
        make_split(specs(4, seed_ids()[:1]))


def test_split_writes_links_that_are_folders_of_tasks(tmp_path: Path) -> None:
    for kind in ("binary", "regression", "multiclass", "text"):
        bundles.saved(bundles.draft(kind), tmp_path / "set" / "tasks")
    arguments = ["split", str(tmp_path / "set"), "--out", str(tmp_path / "split"), "--validation", "0.5", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    split = Split.model_validate_json((tmp_path / "split" / "split.json").read_bytes())
    assert json.loads(result.stdout)["train"] == len(split.train) == 2
    for side in SIDES:
        assert [path.name for path in find_bundles(tmp_path / "split" / side)] == [e.task_id for e in split.side(side)]
    with pytest.raises(ConfigError, match="not empty"):
        write_split(tmp_path / "set", tmp_path / "split")


def test_broken_tasks_are_left_out_and_named(tmp_path: Path) -> None:
    base = bundles.draft("regression")
    for number, seed in enumerate(seed_ids()[:5]):
        provenance = base.spec.provenance.replace(seed_id=seed, rng_seed=number)
        files = {**base.files, "public/train.csv": base.files["public/train.csv"] + b"\n" * number}
        spec = base.spec.replace(task_id=f"t{number}", provenance=provenance)
        bundles.saved(replace(base, spec=spec, files=files), tmp_path / "tasks")
    (tmp_path / "tasks/t0/public/train.csv").write_text("garbage")
    (tmp_path / "tasks/t1/task.yaml").write_text("{")
    result = CliRunner().invoke(app, ["split", str(tmp_path / "tasks"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 1, result.output
    split = Split.model_validate_json((tmp_path / "out/split.json").read_text())
    assert sorted(entry.task_id for side in SIDES for entry in split.side(side)) == ["t2", "t3", "t4"]
    assert "t0: task t0" in split.left_out[0]
    assert "was changed" in split.left_out[0]
    assert "t1: " in split.left_out[1]
