"""The study of training: which commands are left to run, and what its page says of known runs."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.run_builder import episode, step, write_run

FILE = Path(__file__).parent.parent / "studies" / "train_study.py"


@pytest.fixture(scope="module")
def study() -> Any:
    spec = importlib.util.spec_from_file_location("train_study", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_study"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["train_study"]


def log(folder: Path, lines: list[dict[str, Any]], *, final: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if final:
        (folder / "final").mkdir()


def trained(out: Path, *, grpo_s: float = 30.0) -> Path:
    place = out / "rng-0"
    log(place / "sft", [{"train_step": at, "loss": 1.0, "wall_s": 2.0} for at in range(1, 5)])
    for name in ("grpo", "shuffled"):
        log(place / name, [{"train_step": at, "times": {"wall_s": grpo_s / 3}} for at in range(1, 4)])
    for name in ("train-tasks", "held-out"):
        (out / name).mkdir()
        (out / name / "summary.json").write_text("{}")
    (out / "demonstrations.jsonl").write_text("")
    return place


def test_more_sft_has_as_many_seconds_as_grpo_and_only_what_is_missing_runs(study: Any, tmp_path: Path) -> None:
    place = trained(tmp_path)
    assert study.equal_steps(place) == 15
    plan = study.Plan("cpu-small", 160, 32, 4)
    commands = list(study.stages(plan, tmp_path, 0))
    assert [command[:2] for command in commands] == [["train", "sft"], ["rollout", "--resume"]]
    assert "sft.train_steps=15" in commands[0]
    assert f"hf:{place / 'more-sft' / 'final'}" in commands[1]
    first = next(iter(study.stages(plan, tmp_path / "new", 0)))
    assert first[:3] == ["generate", "--count", "160"]


def test_training_and_held_out_seeds_are_different(study: Any) -> None:
    training, held_out = set(study.TRAINING_SEEDS.split(",")), set(study.HELD_OUT_SEEDS.split(","))
    assert not training & held_out


def test_the_page_holds_every_arm_with_its_interval_and_its_differences(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "seeds_of", lambda out: {"a": "one", "b": "one", "c": "two", "d": "two"})
    place = trained(tmp_path)
    log(place / "more-sft", [{"train_step": 1, "loss": 1.0, "wall_s": 30.0}])
    scores = {"sft": None, "grpo": 0.95, "more-sft": 0.2, "shuffled": None}
    episodes = [
        episode(task, f"hf:{place}/{arm}/final", attempt, None if task == "c" and arm == "more-sft" else score)
        for arm, score in scores.items()
        for task in "abcd"
        for attempt in range(2)
    ]
    write_run(place / "judged", episodes)
    plan = study.Plan("cpu-small", 160, 32, 2)
    text = study.page(plan, tmp_path, [0])
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in text.splitlines() if " | " in line}
    assert "4 tasks of 4 held-out seeds, 2 episodes of each arm" in text
    assert "8 episodes an arm" in text
    grpo, more = rows["SFT, then GRPO"], rows["SFT, then more SFT"]
    assert grpo[0].startswith("1.000")
    assert grpo[3].startswith("1.000 (0.398 to 1.000)")  # every submission valid: the exact interval of four tasks
    assert more[3].startswith("0.750 (")
    assert rows["SFT"][0].startswith("0.100")
    assert rows["two"] == ["2", "0.100", "1.000", "0.250", "0.100 |"]
    difference = rows["SFT, then GRPO - SFT"]
    assert difference[0].startswith("0.900")
    assert "better / equal / worse at 4 / 0 / 0 tasks" in difference[0]


def test_what_the_arms_chose_is_read_from_the_comments_of_the_winning_scripts(study: Any, tmp_path: Path) -> None:
    place = trained(tmp_path)
    script = "# A model.\n# Features: words.\nx.to_csv('submission.csv')  # not this one"
    names = [f"hf:{place}/{arm}/final" for arm in ("sft", "grpo")]
    steps = (
        step(0, code=script, has_submission=True),
        step(1, code="# later\nopen('sample_submission.csv')", has_submission=True),
    )
    write_run(place / "judged", [episode("a", names[0], 0, None), episode("a", names[1], 0, 0.95, steps=steps)])
    text = study.choices(tmp_path, [0], 1)
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in text if " | " in line}
    assert rows[study.NO_SCRIPT] == ["100%, 0.100", "0%", "0%", "0% |"]
    assert rows["A model."] == ["0%", "100%, 1.000", "0%", "0% |"]
    assert rows["Features: words."] == ["0%", "100%", "0%", "0% |"]


def test_a_run_that_is_not_whole_makes_no_page(study: Any, tmp_path: Path) -> None:
    place = trained(tmp_path)
    log(place / "more-sft", [{"train_step": 1, "loss": 1.0, "wall_s": 30.0}])
    names = [f"hf:{place}/{arm}/final" for arm in study.ARMS.values()]
    write_run(place / "judged", [episode("a", names[0], 0, 0.9)], policies=names, attempts=1)
    with pytest.raises(SystemExit, match="3 episodes of rng_seed 0 are not there yet or failed"):
        study.page(study.Plan("cpu-small", 160, 32, 1), tmp_path, [0])


def test_what_is_no_number_is_named(study: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        study.main(["--out", str(tmp_path / "none"), "--rng-seeds", "0,x"])
    assert "--rng-seeds 0,x: give whole numbers" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_stage_that_fails_ends_the_study_with_its_status(study: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        study.main(["--out", str(tmp_path / "out"), "--recipe", "no-such-recipe", "--train-count", "0"])
    assert ended.value.code == 2
